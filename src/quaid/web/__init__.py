"""The web interface, the JSON API and MCP over HTTP.

`server.build_app` creates the Starlette app, `workers` runs operations on threads, `auth` authenticates
requests. A page calls an operation with `await request.app.state.workers.call(command, arguments)`.
`request.state` holds the caller's `scope` (read, write or owner) and `csrf`, the token that a form sends back
as the field `csrf_token` and a script as the header `X-CSRF-Token`.
"""
