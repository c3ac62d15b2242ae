"""Whether the calls of a conversation and their results belong together."""

from turnout.core.ids import ToolCallId
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import Call, Conversation, Result

__all__ = ["check_pairs"]


def check_pairs(said: Conversation) -> None:
    """Refuse (400) a conversation in which a call has no result, or a result no call.

    Every provider would, in words about a request that the client never wrote.
    """
    waiting: dict[ToolCallId, None] = {}
    before = ""
    for turn in said.turns:
        # Neighbours of one role are one answer to every provider.
        if turn.role == "assistant" and before != "assistant" and waiting:
            raise _unanswered(next(iter(waiting)))
        before = turn.role
        for part in turn.parts:
            if isinstance(part, Call):
                waiting[part.id] = None
            elif isinstance(part, Result):
                if part.call_id not in waiting:
                    raise _refused(
                        f"The conversation answers the call `{part.call_id}`,"
                        " which no message before makes.",
                        "Send the message that makes the call before its result.",
                    )
                del waiting[part.call_id]
    if waiting:
        raise _unanswered(next(iter(waiting)))


def _unanswered(call: ToolCallId) -> GatewayError:
    return _refused(
        f"The conversation holds no result of the call `{call}`.",
        "Send a result for each call, if only to say that it was not run.",
    )


def _refused(message: str, mend: str) -> GatewayError:
    return GatewayError(message, status=400, code="invalid_request", mend=mend)
