"""How tokens and keys look, as data: rules of our own for what has a shape wherever it stands.

A rule has needles, without which it is not even tried, a pattern that is matched where a needle stands, and a second
look (`secret_looks`) at what was found. Secrets that only the words around them give away are in `secret_words`. Does
not know how a text is searched; `secrets` does.
"""

import re
from collections.abc import Callable
from re import IGNORECASE, Match, Pattern
from typing import NamedTuple

from quaid.core import secret_looks as looks

Look = Callable[[Match[str]], bool]


class Rule(NamedTuple):
    """How one kind of secret looks. The pattern's group `secret` is what must go, else all of it."""

    kind: str
    needles: tuple[str, ...]
    """One of them is where the pattern begins; in lower case when `folded`."""
    pattern: Pattern[str]
    holds: Look
    """Whether what was found is one after all."""
    issuer: str = ""
    """Who can revoke it."""
    lead: Pattern[str] | None = None
    """What must stand before the needle, and belongs to the secret unless that is a group; ends with \\Z."""
    reach: int = 0
    """How far before the needle the lead may begin."""
    folded: bool = False
    """Whether capital and small letters are the same to it."""


# Where a token may begin: after a sign, an escaped line end, a colour of a terminal, an escaped byte of an address.
_B = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=\dm)|(?<=%[0-9A-Fa-f]{2}))"
_E = r"(?![A-Za-z0-9])"


def _token(kind: str, issuer: str, needles: str, rest: str, holds: Look = looks.shaped) -> Rule:
    """A token that begins with one of the needles and goes on like `rest`."""
    words = tuple(needles.split())
    begins = "|".join(word.replace(".", r"\.").replace("/", "/") for word in words)
    return Rule(kind, words, re.compile(f"{_B}(?:{begins}){rest}"), holds, issuer)


_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<body>"
    r"(?:[^-]|-(?!----)){0,20000}(?=-----END )|(?:(?:\s|\\[nr]|[>|])+[A-Za-z0-9+/=]{16,200})+)"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)

SHAPED: tuple[Rule, ...] = (
    # keys
    Rule("private key", ("-----BEGIN ",), re.compile(_PEM), looks.key_block),
    Rule(
        "private key",
        ("LS0tLS1CRUdJTi",),
        re.compile(r"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/=]{60,}"),
        looks.encoded_key,
    ),
    Rule(
        "private key",
        ("Private-Lines: ",),
        re.compile(r"Private-Lines: \d+\s+(?P<secret>(?:[A-Za-z0-9+/=]{16,}\s*)+)"),
        looks.shaped,
    ),
    _token("age key", "", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    _token("jwt", "", "eyJ", r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    _token(
        "jwt",
        "",
        "eyJ",
        r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    ),
    _token("wallet key", "", "xprv yprv zprv", r"[1-9A-HJ-NP-Za-km-z]{100,112}" + _E),
    # clouds
    _token("aws key", "AWS", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}" + _E),
    _token("aws bedrock key", "AWS", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}"),
    Rule(
        "aws secret key",
        ("AKIA", "ASIA"),  # the secret half is beside its id
        re.compile(
            r"A[KS]IA[A-Z0-9]{16}\b[^A-Za-z0-9/+](?:[^\n]|\n(?!\n)){0,80}?(?<![A-Za-z0-9/+])(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        lambda found: looks.random(found) and looks.kinds(found["secret"]) >= 3,
        "AWS",
    ),
    _token("google key", "Google", "AIza", r"[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    _token("google token", "Google", "ya29. GOCSPX- 1//0", r"[0-9A-Za-z_-]{20,}"),
    Rule(
        "azure key",
        ("AccountKey=", "AccessKey=", "SharedAccessKey=", "accountkey=", "accesskey="),
        re.compile(r"(?:Shared)?A(?:ccount|ccess)Key=(?P<secret>[A-Za-z0-9+/]{30,}={0,2})", IGNORECASE),
        looks.shaped,
        "Azure",
    ),
    Rule(
        "azure secret",
        ("Q~",),
        re.compile(r"Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"),
        looks.shaped,
        "Azure",
        lead=re.compile(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\d\Z"),
        reach=6,
    ),
    Rule(
        "azure secret",
        ("sig=",),
        re.compile(r"sig=(?P<secret>[A-Za-z0-9+/]{20,}(?:[A-Za-z0-9+/]|%2[BF]|%3D|=){20,})"),
        looks.mixed,
        "Azure",
    ),
    Rule(
        "azure secret",
        ("AZDO",),
        re.compile(r"AZDO[A-Za-z0-9]{4}" + _E),
        looks.shaped,
        "Azure DevOps",
        lead=re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}\Z"),
        reach=78,
    ),
    _token("digitalocean token", "DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{40,}"),
    _token("alibaba key", "Alibaba Cloud", "LTAI", r"[A-Za-z0-9]{16,22}" + _E, looks.mixed),
    _token("heroku key", "Heroku", "HRKU-", r"[A-Za-z0-9_-]{30,}"),
    _token("fly token", "Fly.io", "fo1_ fm1_ fm2_ fm1r_", r"[A-Za-z0-9+/=,_-]{40,}"),
    _token("netlify token", "Netlify", "nfp_ nfc_ nfu_", r"[A-Za-z0-9_]{36,}", looks.mixed),
    _token("vercel token", "Vercel", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}", looks.mixed),
    _token("supabase key", "Supabase", "sbp_ sb_secret_", r"[A-Za-z0-9_-]{20,}", looks.mixed),
    _token("planetscale key", "PlanetScale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_=.-]{32,}"),
    _token("databricks token", "Databricks", "dapi", r"[a-f0-9]{32}(?:-\d)?" + _E),
    _token("tailscale key", "Tailscale", "tskey-", r"[a-z]+-[A-Za-z0-9]{6,}-?[A-Za-z0-9]{16,}"),
    _token("vault token", "HashiCorp Vault", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,}"),
    Rule(
        "terraform token",
        (".atlasv1.",),
        re.compile(r"\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
        looks.shaped,
        "HCP Terraform",
        lead=re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\Z"),
        reach=16,
    ),
    _token("pulumi token", "Pulumi", "pul-", r"[a-f0-9]{40}" + _E),
    _token(
        "doppler token", "Doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{40,}"
    ),
    _token("1password token", "1Password", "ops_eyJ", r"[A-Za-z0-9+/=_-]{100,}"),
    # code and packages
    _token("github token", "GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9_.-]{30,}"),
    _token("github token", "GitHub", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _token(
        "gitlab token",
        "GitLab",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct- glwt-",
        r"[A-Za-z0-9_.-]{20,}",
    ),
    _token("gitlab token", "GitLab", "GR1348941", r"[A-Za-z0-9_-]{20,}"),
    _token("bitbucket token", "Bitbucket", "ATBB", r"[A-Za-z0-9_=-]{24,}" + _E, looks.mixed),
    _token("atlassian token", "Atlassian", "ATATT3 ATCTT3", r"[A-Za-z0-9_=-]{60,}"),
    _token("npm token", "npm", "npm_", r"[A-Za-z0-9]{36}" + _E),
    _token("pypi token", "PyPI", "pypi-", r"[A-Za-z0-9_-]{50,}"),
    _token("rubygems key", "RubyGems", "rubygems_", r"[a-f0-9]{48}"),
    _token("crates token", "crates.io", "cio", r"[A-Za-z0-9]{32}" + _E, looks.random),
    _token("nuget key", "NuGet", "oy2", r"[a-z0-9]{43}" + _E),
    _token("artifactory key", "JFrog", "AKCp", r"[A-Za-z0-9]{60,}" + _E),
    _token("docker hub token", "Docker Hub", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{24,}"),
    _token("sonar token", "SonarQube", "sqp_ squ_ sqa_", r"[a-f0-9]{40}" + _E),
    _token("circleci token", "CircleCI", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{40,}"),
    _token("buildkite token", "Buildkite", "bkua_", r"[a-z0-9]{40}" + _E),
    _token("sentry token", "Sentry", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{40,}"),
    _token("grafana token", "Grafana", "glsa_ glc_", r"[A-Za-z0-9_+/=]{32,}"),
    _token("grafana token", "Grafana", "eyJrIjoi", r"[A-Za-z0-9_+/=]{50,}"),
    _token("new relic key", "New Relic", "NRAK- NRJS-", r"[A-Za-z0-9]{19,}" + _E),
    _token("dynatrace token", "Dynatrace", "dt0c01. dt0s01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _token("postman key", "Postman", "PMAK-", r"[A-Za-z0-9]{20,}-[A-Za-z0-9]{30,}"),
    # models
    _token("anthropic key", "Anthropic", "sk-ant-", r"[A-Za-z0-9_-]{16,}"),
    _token("openrouter key", "OpenRouter", "sk-or-", r"(?:v1-)?[A-Za-z0-9]{20,}"),
    _token("langfuse key", "Langfuse", "sk-lf-", r"[a-f0-9-]{36}"),
    _token(
        "openai key",
        "OpenAI",
        "sk-",
        r"(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
        looks.mixed,
    ),
    _token("huggingface token", "Hugging Face", "hf_ api_org_", r"[A-Za-z0-9]{30,}(?![A-Za-z0-9_])"),
    _token("groq key", "Groq", "gsk_", r"[A-Za-z0-9]{30,}"),
    _token("xai key", "xAI", "xai-", r"[A-Za-z0-9]{40,}"),
    _token("replicate token", "Replicate", "r8_", r"[A-Za-z0-9]{30,}"),
    _token("perplexity key", "Perplexity", "pplx-", r"[A-Za-z0-9]{30,}"),
    _token("nvidia key", "NVIDIA", "nvapi-", r"[A-Za-z0-9_-]{40,}"),
    _token("cerebras key", "Cerebras", "csk-", r"[a-z0-9]{40,}", looks.mixed),
    _token("together key", "Together", "tgp_v1_", r"[A-Za-z0-9_-]{32,}"),
    _token("fireworks key", "Fireworks", "fw_", r"[A-Za-z0-9]{22,24}" + _E, looks.random),
    _token("langsmith key", "LangSmith", "lsv2_", r"(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    _token("pinecone key", "Pinecone", "pcsk_", r"[A-Za-z0-9_]{40,}"),
    _token("jina key", "Jina", "jina_", r"[A-Za-z0-9_-]{50,}"),
    _token("tavily key", "Tavily", "tvly-", r"[A-Za-z0-9-]{24,}", looks.mixed),
    _token("wandb key", "Weights & Biases", "wandb_v1_", r"[A-Za-z0-9_]{40,}"),
    _token("elevenlabs key", "ElevenLabs", "sk_", r"[a-f0-9]{48}" + _E),
    # people
    _token(
        "slack token",
        "Slack",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-",
        r"[A-Za-z0-9.%-]{10,}",
        looks.mixed,
    ),
    Rule(
        "telegram token",
        (":AA",),
        re.compile(r":AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
        looks.shaped,
        "Telegram",
        lead=re.compile(r"(?<!\d)\d{8,10}\Z"),
        reach=12,
    ),
    *(
        Rule("webhook", (needle,), re.compile(source), looks.mixed, issuer)
        for issuer, needle, source in (
            (
                "Slack",
                "hooks.slack.com",
                r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,})",
            ),
            ("Discord", "/api/webhooks/", r"/api/webhooks/(?P<secret>\d{10,}/[A-Za-z0-9_-]{20,})"),
            (
                "Microsoft Teams",
                ".webhook.office.com/",
                r"\.webhook\.office\.com/webhookb2/(?P<secret>[a-f0-9@/A-Z-]{40,}[A-Za-z0-9@/-]*)",
            ),
            (
                "Google Chat",
                "chat.googleapis.com/",
                r"chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?(?P<secret>key=[\w-]{20,}&token=[\w%-]{20,})",
            ),
            ("Zapier", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/(?P<secret>\d+/[a-z0-9]{6,})"),
            (
                "IFTTT",
                "maker.ifttt.com/",
                r"maker\.ifttt\.com/trigger/[^/\s]+/(?:json/)?with/key/(?P<secret>[\w-]{20,})",
            ),
            ("Make", ".make.com/", r"\.make\.com/(?P<secret>[a-z0-9]{30,})"),
        )
    ),
    # money and mail
    _token("stripe key", "Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"[A-Za-z0-9+/]{16,}"),
    _token("square token", "Square", "sq0atp- sq0csp- EAAAE", r"[A-Za-z0-9_-]{22,}", looks.mixed),
    _token("razorpay key", "Razorpay", "rzp_live_", r"[A-Za-z0-9]{14,}"),
    _token("shopify token", "Shopify", "shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{32}"),
    _token("twilio key", "Twilio", "SK", r"[0-9a-f]{32}" + _E),
    _token("sendgrid key", "SendGrid", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _token("mailgun key", "Mailgun", "key-", r"[0-9a-f]{32}" + _E),
    Rule(
        "mailchimp key",
        ("-us",),
        re.compile(r"-us\d{1,2}" + _E),
        looks.shaped,
        "Mailchimp",
        lead=re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}\Z"),
        reach=34,
    ),
    _token("brevo key", "Brevo", "xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _token("resend key", "Resend", "re_", r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}" + _E, looks.random),
    # work
    _token("linear key", "Linear", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{30,}"),
    _token(
        "notion token", "Notion", "ntn_ secret_", r"(?:[A-Za-z0-9]{43}|[A-Za-z0-9]{46})" + _E, looks.mixed
    ),
    _token("airtable token", "Airtable", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _token("figma token", "Figma", "figd_", r"[A-Za-z0-9_-]{36,}"),
    _token("dropbox token", "Dropbox", "sl.", r"[A-Za-z0-9_-]{100,}"),
    _token("hubspot token", "HubSpot", "pat-na1- pat-eu1- pat-na2-", r"[a-f0-9-]{36}"),
    _token("contentful token", "Contentful", "CFPAT-", r"[A-Za-z0-9_-]{40,}"),
    _token("facebook token", "Meta", "EAA", r"[A-Za-z0-9]{90,}" + _E, looks.mixed),
    # addresses: everybody's
    Rule(
        "url password",
        ("://",),
        re.compile(r"://[^\s/:@'\"<>`\\]{0,200}:(?P<secret>[^\s/@'\"<>`]{1,200}+)@(?=[\w\[])"),
        looks.in_address,
    ),
    Rule(
        "url password",
        ("://",),  # a slash in the password should have been escaped, and often is not
        re.compile(r"://[^\s/:@'\"<>`\\]{1,60}:(?P<secret>[^\s@'\"<>`:?]{1,80}+)@[\w.-]+(?=[:/]|\s|\Z)"),
        lambda found: (
            looks.in_address(found)
            and looks.kinds(found["secret"].partition("/")[0]) >= 2
            and "." not in found["secret"]
        ),
    ),
    Rule(
        "url password",
        ("://",),
        re.compile(r"://(?P<secret>[A-Za-z0-9_-]{20,200}+)@(?=[\w\[])"),
        looks.random,
    ),
)

DISCORD = Rule(
    "discord token",
    (),  # no fixed letters: `secrets` looks for its two full stops
    re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])"),
    looks.random,
    "Discord",
    lead=re.compile(r"(?<![A-Za-z0-9_.-])(?:mfa\.)?[MNO][DTjz][A-Za-z0-9]{20,26}\Z"),
    reach=34,
)
CARD = Rule("card number", (), re.compile(r"[0-9](?:[ -]?[0-9]){12,}+"), looks.shaped, "the bank")
"""The pattern only finds enough digits; `secrets` asks `secret_looks.card` about their groups."""
