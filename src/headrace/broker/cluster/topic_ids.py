"""Ids of new topics."""

from headrace.model.ids import TopicId
from headrace.ports.entropy import Entropy


def new_topic_id(entropy: Entropy) -> TopicId:
    """Draw a random UUID of version 4; tools that check the version bits accept it."""
    drawn = bytearray(entropy.random_bytes(16))
    drawn[6] = drawn[6] & 0x0F | 0x40
    drawn[8] = drawn[8] & 0x3F | 0x80
    if drawn[0] >> 2 == 0x3E:  # its base64 form would begin with "-", which command lines take for an option
        drawn[0] &= 0x7F
    return TopicId(bytes(drawn))
