"""The memory in a browser and over HTTP.

`app.build` makes the Starlette app; `crew` holds the brains; `guard` decides who comes in. A page asks the memory
only through `await request.app.state.crew.call(command, arguments)`, and finds in `request.state` who asks:
`scope` (read, write or owner) and `csrf`, the token that a form sends back as the field `csrf_token` and a script as
the header `X-CSRF-Token`; `guard` checks both before a page is asked.
"""
