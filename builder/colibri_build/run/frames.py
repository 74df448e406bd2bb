"""The frames of colibri_build.frames, by their first name."""

from colibri_build.frames import MAX_BODY_BYTES, MAX_PENDING_BYTES, Deframer, Frame, Text, encode

__all__ = ["MAX_BODY_BYTES", "MAX_PENDING_BYTES", "Deframer", "Frame", "Text", "encode"]
