"""`tuilab` and `python -m tuilab`: hand over to the command line."""

from tuilab.cli import main

if __name__ == "__main__":
    main()
