from langchain_core.language_models import FakeListChatModel
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph

import quaid
from quaid.integrations.langgraph import QuaidRetriever, QuaidStore

model = FakeListChatModel(responses=["Noted."])  # stands in for a model, so that this example needs no key


def answer(state: MessagesState) -> dict:
    user = ("users", "ines")
    get_store().put(user, "diet", {"text": state["messages"][-1].content})
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")

with quaid.open(agent="planner") as memory:
    store = QuaidStore(memory)
    app = graph.compile(store=store)
    app.invoke({"messages": [("user", "I eat no sardines.")]})
    print(store.get(("users", "ines"), "diet").value)
    print([item.key for item in store.search(("users",), query="Which food does she avoid? sardines")])
    print(store.list_namespaces())
    for document in QuaidRetriever(memory=memory, options={"limit": 3}).invoke("sardines"):
        print(document.metadata["slug"], document.page_content.splitlines()[-1])
