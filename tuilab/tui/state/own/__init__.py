"""The user's own commands and their forms, as the Lab lists them."""
