"""fastmcp's proxy as its documentation has it: python fastmcp_proxy.py servers.json port"""

import json
import sys

from fastmcp.server import create_proxy

with open(sys.argv[1]) as file:
    servers = json.load(file)
create_proxy(servers, name="bench").run(
    transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="warning"
)
