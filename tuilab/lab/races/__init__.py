"""How arms race: what a race may be made of, and which have raced."""
