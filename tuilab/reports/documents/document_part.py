"""Define the base of all parts of the documents that tuilab writes as JSON."""

import msgspec


class DocumentPart(msgspec.Struct, frozen=True):
    """A part of a document."""
