"""The user's own commands, as the Lab has them."""
