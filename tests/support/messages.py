"""What a message may not show to people."""

import re

REGULAR_EXPRESSION = re.compile(r"[\^\\*]|\$(\W|$)|\(\?|\{[0-9,]+\}|\[[^\]\s]-|[\])]\+|regex|should match")
