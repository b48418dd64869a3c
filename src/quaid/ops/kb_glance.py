"""Where the knowledge base is, and its one line for whoever begins a session. Not operations: a hook has no time."""

import os

from quaid.config import Settings
from quaid.kb import layout


def root(settings: Settings) -> str:
    """Where the knowledge base is: the option kb.store, AI_KB_DIR, or the usual place."""
    chosen, _ = settings.said("kb.store")
    if chosen:
        return settings.beside_config(chosen)
    return settings.path(layout.default_store_root(settings.environ, settings.user_home))


def nudge(settings: Settings) -> str:
    """What `ai-kb status` ends with; nothing where there is no store, which one look tells."""
    path = root(settings)
    if not os.path.isdir(os.path.join(path, ".git")):
        return ""
    from quaid.kb import state

    if not os.path.isfile(os.path.join(path, layout.CONTRACT_FILE)):
        from quaid.kb import remote as store_remote
        from quaid.kb.git import Git

        if store_remote.inspect_store(Git(path, settings.environ)).is_foreign:
            return ""
    return state.session_nudge(path, settings.environ)
