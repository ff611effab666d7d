"""Choose, open, replace and remove the files that tuilab keeps."""
