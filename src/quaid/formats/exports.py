"""Conversations as ChatGPT and Claude.ai export them: objects of a conversations.json.

Knows both shapes. Of ChatGPT's tree of answers the branch is taken that the person saw last.
"""

from typing import Any

from quaid.formats.transcripts import Conversation, Turn, said, short, texts


def read(value: Any) -> Conversation | None:
    """A conversation of an export; None when it is none."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("mapping"), dict):
        return _chatgpt(value)
    if isinstance(value.get("chat_messages"), list):
        return _claude(value)
    return None


def _chatgpt(value: dict[str, Any]) -> Conversation | None:
    session = short(value.get("conversation_id") or value.get("id"))
    turns = [turn for node in _branch(value) if (turn := _message(node))]
    return Conversation("chatgpt", session, short(value.get("title")), tuple(turns)) if session else None


def _branch(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes from the first message to the current one."""
    nodes: dict[str, Any] = value["mapping"]
    at = value.get("current_node")
    if not isinstance(at, str) or at not in nodes:  # the last one that was made
        at = next(reversed(nodes), None)
    path: dict[str, dict[str, Any]] = {}
    while isinstance(at, str) and at not in path and isinstance(nodes.get(at), dict):
        path[at] = nodes[at]
        at = nodes[at].get("parent")
    return list(reversed(path.values()))


def _message(node: dict[str, Any]) -> Turn | None:
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    content, author, facts = (message.get(key) or {} for key in ("content", "author", "metadata"))
    if not all(isinstance(each, dict) for each in (content, author, facts)):
        return None
    if content.get("content_type") not in ("text", "multimodal_text"):
        return None
    if message.get("recipient", "all") != "all" or facts.get("is_visually_hidden_from_conversation"):
        return None
    parts = content.get("parts")
    text = "\n\n".join([part for part in parts if isinstance(part, str)]) if isinstance(parts, list) else ""
    return said(author.get("role"), text, message.get("create_time"), message.get("id"))


def _claude(value: dict[str, Any]) -> Conversation | None:
    session = short(value.get("uuid"))
    turns = []
    for message in value["chat_messages"]:
        if isinstance(message, dict):
            text = texts(message.get("content")) or texts(message.get("text"))
            turns.append(said(message.get("sender"), text, message.get("created_at"), message.get("uuid")))
    kept = tuple(turn for turn in turns if turn)
    return Conversation("claude.ai", session, short(value.get("name")), kept) if session else None
