"""The memory over the Model Context Protocol.

`handlers` answers requests and knows no transport; `stdio` is the loop around it for one client on pipes.
"""
