"""Where a run comes from that does not happen here: out of an archive, or from another box while it goes on."""
