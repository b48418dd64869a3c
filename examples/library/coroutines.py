import asyncio

import quaid


async def main() -> None:
    async with await quaid.open_async() as memory:
        await memory.put("people/ines", "# Ines\n\nInes restores tidal batteries.")
        await memory.put("people/tomas", "# Tomas\n\nTomas plays the cello.")

        questions = ("who restores batteries?", "who plays the cello?")
        answers = await asyncio.gather(*(memory.query(question) for question in questions))
        for question, answer in zip(questions, answers, strict=True):
            print(question, answer.results[0].slug)

        async with asyncio.timeout(10):  # a call that takes longer is aborted
            print(quaid.as_json(await memory.tag("people/ines", "engineer")))


asyncio.run(main())
