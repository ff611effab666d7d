"""The JSON documents of reports that belong to no other part: their base, and comparisons."""
