import asyncio

from claude_agent_sdk import ClaudeAgentOptions

import quaid
from quaid.integrations.claude_agent import allowed_tools, mcp_server


async def main() -> None:
    with quaid.open(agent="planner") as memory:
        options = ClaudeAgentOptions(
            mcp_servers={"quaid": mcp_server(memory)}, allowed_tools=allowed_tools(memory, "lean")
        )
        print(options.allowed_tools)
        # async for message in claude_agent_sdk.query(prompt="When should I call Ines?", options=options): …


asyncio.run(main())
