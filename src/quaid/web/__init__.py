"""The web interface, the JSON API and MCP over HTTP.

`server.build_app` creates the Starlette app, `workers` runs operations on threads and in processes, `auth`
authenticates requests. A page calls an operation with `pages.base.call_operation`. `request.state` holds the caller's
`scope` (read, write or owner, "" without credentials) and `csrf`, the token that a form sends back as the field
`csrf_token` and a script as the header `X-CSRF-Token`.
"""
