"""Our server with the tools, resources and prompts that MCP's conformance suite asks for by name, instead of ours.

The carrier, the sessions, the envelope and the guard are those of `quaid serve --http`; only what stands behind the
methods is another. Run as a program, it takes the words of `quaid`.
"""

import sys
import time
from typing import Any

from quaid.cli.main import main
from quaid.errors import InvalidArgument, NotFound, UnknownTool
from quaid.mcp import server
from quaid.mcp.server import MethodCall

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

TEXT = {"type": "text", "text": "Some words for a test."}
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": SOUND, "mimeType": "audio/wav"}
EMBEDDED = {
    "type": "resource",
    "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "Some words within."},
}
CONTENTS: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [TEXT],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [EMBEDDED],
    "test_multiple_content_types": [TEXT, IMAGE, EMBEDDED],
    "test_error_handling": [TEXT],
    "test_tool_with_progress": [TEXT],
    "test_logging_tool": [TEXT],
    "test_streaming_elicitation": [TEXT],
    "json_schema_2020_12_tool": [TEXT],
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}
RESOURCES = ("test://static-text", "test://static-binary")
TEMPLATE = "test://template/{id}/data"

PLAIN_SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
RICH_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def list_tools(_ask: MethodCall) -> dict[str, Any]:
    rich = "json_schema_2020_12_tool"
    return {
        "tools": [
            {"name": name, "description": name, "inputSchema": RICH_SCHEMA if name == rich else PLAIN_SCHEMA}
            for name in CONTENTS
        ]
    }


def call_tool(ask: MethodCall) -> dict[str, Any]:
    name = str(ask.params.get("name"))
    if name not in CONTENTS:
        raise UnknownTool(name=name[:100], hint="")
    if name == "test_tool_with_progress":
        for done in (0, 50, 100):
            ask.brain.progress(done, 100, "Working")
            time.sleep(0.12)  # reports come at a calm pace
    return {"content": CONTENTS[name], "isError": name == "test_error_handling"}


def list_resources(_ask: MethodCall) -> dict[str, Any]:
    return {"resources": [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in RESOURCES]}


def list_templates(_ask: MethodCall) -> dict[str, Any]:
    return {"resourceTemplates": [{"uriTemplate": TEMPLATE, "name": "data"}]}


def read_resource(ask: MethodCall) -> dict[str, Any]:
    uri = str(ask.params.get("uri"))
    if uri == RESOURCES[0]:
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "Words that stay."}]}
    if uri == RESOURCES[1]:
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PIXEL}]}
    before, after = TEMPLATE.split("{id}")
    if uri.startswith(before) and uri.endswith(after):
        text = '{"id": "' + uri[len(before) : -len(after)] + '"}'
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}
    raise NotFound(what="resource", name=uri, hint="")


def list_prompts(_ask: MethodCall) -> dict[str, Any]:
    return {
        "prompts": [
            {
                "name": name,
                "description": name,
                "arguments": [{"name": item, "description": item, "required": True} for item in wanted],
            }
            for name, wanted in PROMPTS.items()
        ]
    }


def get_prompt(ask: MethodCall) -> dict[str, Any]:
    name, inputs = str(ask.params.get("name")), ask.params.get("arguments") or {}
    if name not in PROMPTS or set(inputs) != set(PROMPTS[name]):
        raise InvalidArgument(name="name", problem="there is no such prompt with such arguments")
    content: dict[str, Any] = {"type": "text", "text": " ".join([name, *map(str, inputs.values())])}
    if name == "test_prompt_with_image":
        content = IMAGE
    elif "resourceUri" in inputs:
        resource = {"uri": inputs["resourceUri"], "mimeType": "text/plain", "text": "Some words within."}
        content = {"type": "resource", "resource": resource}
    return {"messages": [{"role": "user", "content": content}]}


if __name__ == "__main__":
    for methods in (server.HANDSHAKE_METHODS, server.STATELESS_METHODS):
        methods.update(
            {
                "tools/list": list_tools,
                "tools/call": call_tool,
                "resources/list": list_resources,
                "resources/templates/list": list_templates,
                "resources/read": read_resource,
                "prompts/list": list_prompts,
                "prompts/get": get_prompt,
            }
        )
    sys.exit(main(sys.argv[1:]))
