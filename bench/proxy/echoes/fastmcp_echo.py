"""An echo as a plain tool of fastmcp, or behind its code mode: python fastmcp_echo.py plain|code port"""

import sys

from fastmcp import FastMCP

transforms = []
if sys.argv[1] == "code":
    from fastmcp.experimental.transforms.code_mode import CodeMode

    transforms.append(CodeMode())
server = FastMCP("bench", transforms=transforms)


@server.tool
def same(text: str) -> dict:
    return {"text": text}


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="warning")
