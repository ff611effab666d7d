"""How fast a GPU is at what training does, measured on it; `tuilab doctor --gpu` asks."""
