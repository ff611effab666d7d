"""Files that tuilab keeps: where they lie, and how they are opened, replaced and removed."""
