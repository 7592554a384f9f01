"""The model client: one chat request in, one reply out, paid for once."""

from rectom.llm.client import ChatClient, WouldSend
from rectom.llm.limits import Limits
from rectom.llm.reply import Outcome, Reply, Usage
from rectom.llm.request import ChatRequest, Message, ModelId, Sampling, Structured
from rectom.llm.retry import Retry
from rectom.llm.store import MemoryReplies, ReplyStore
from rectom.llm.structured import Answer, BadReply, Tries, ask_json
from rectom.llm.wire import Timeouts

__all__ = [
    "Answer",
    "BadReply",
    "ChatClient",
    "ChatRequest",
    "Limits",
    "MemoryReplies",
    "Message",
    "ModelId",
    "Outcome",
    "Reply",
    "ReplyStore",
    "Retry",
    "Sampling",
    "Structured",
    "Timeouts",
    "Tries",
    "Usage",
    "WouldSend",
    "ask_json",
]
