"""The errors of click's parser in the words of tuilab's other errors: what is wrong, without a capital and a full stop."""

import re

_OPTION = r"'(-[^']+)'(?: / '-[^']+')?"
_WORDS = (
    (r"Got unexpected extra arguments? \((.*)\)", r"unexpected argument \1"),
    (r"No such (?:sub)?command '(.*?)'", r"no subcommand \1"),
    (rf"No such option {_OPTION}", r"no option \1"),
    (r"Missing (argument|option) '(.*)'", r"missing \1 \2"),
    (rf"Option {_OPTION} requires an argument", r"\1 needs a value"),
    (rf"Option {_OPTION} does not take a value", r"\1 takes no value"),
    (rf"Invalid value for {_OPTION}: ", r"\1: "),
    (r"Invalid value for '[^-'][^']*': ", ""),
    (r"(\S+) is not in the range (\S+)<=x<=(\S+)", r"\1 is out of range; it takes \2..\3"),
    (r"File '(.*)' (does not exist|is a directory)", r"file \1 \2"),
    (r"is not a valid integer(?: range)?", "is not a whole number"),
    (r"is not a valid float(?: range)?", "is not a number"),
    (r"\. \(Did you mean one of: (.*)\?\)", r"; did you mean \1?"),
    (r"\.? \(?Did you mean:? (.*?)\?\)?$", r"; did you mean \1?"),
)
_CHOICES = re.compile(r"is not one of ('.*')|did you mean ('.*')\?")


def plain(message: str) -> str:
    """Return an error of click's parser in plain words."""
    words = message.removesuffix(".")
    for pattern, replacement in _WORDS:
        words = re.sub(pattern, replacement, words)
    return _CHOICES.sub(_without_quotes, words)


def _without_quotes(found: re.Match[str]) -> str:
    """Return a list of choices without quotation marks, and near names with "or" between them."""
    words = found[0].replace("'", "")
    return words.replace(", ", " or ") if words.startswith("did you mean") else words
