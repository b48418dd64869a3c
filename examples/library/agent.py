import quaid


def make_prompt(memory: quaid.Memory, question: str) -> str:
    """Return a question for a model, with what the memory has about it."""
    answer = memory.query(question, token_budget=400, limit=1)
    return "\n".join([*(result.text for result in answer.results), question])


with quaid.open(agent="planner") as memory:
    noted = memory.remember("Ines prefers calls before noon.")
    print(noted.path)
    print(make_prompt(memory, "When should I call Ines?"))
    try:
        memory.forget("people/ines", yes=True)
    except quaid.errors.NotAllowed as error:
        print(error.code)  # agents may only propose to forget something
