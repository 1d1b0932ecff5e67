"""Published forms of secrets, one a row: text that must be there, stand-in, pattern, source.

A pattern is searched only in texts that hold its literal, and every repetition in it is bounded, so
that reading stays linear. Where a pattern has a group, the group is the secret, else all of it.
Least lengths are shorter than the published ones: a token that a log cut off opens doors as well.

Restated from gitleaks 8.30 (config/gitleaks.toml), betterleaks (config/betterleaks.toml) and
detect-secrets 1.5 (plugins/), and where none has a form from what the service documents.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple, Pattern, Tuple

GITLEAKS, BETTERLEAKS, DETECT = "gitleaks", "betterleaks", "detect-secrets"


class Form(NamedTuple):
    """One form. `source` names a published rule set, or the service whose documents show it."""

    literal: str
    name: str
    pattern: str
    source: str


@functools.cache
def compiled(pattern: str) -> Pattern[str]:
    """Return the pattern, compiled on first use: all together take longer than a prolog."""
    return re.compile(pattern)


# A W&B key is 40 hexadecimal digits, as a commit is: what stands between tells one from the other.
_WANDB = (
    r"(?i:wandb|w&b|weights (?:&|and) biases)"
    r"(?:(?!(?i:commit|sha|hash|rev|digest|checksum|git|tree))[^\n]){0,120}?"
    r"(?<![0-9A-Za-z])([0-9a-f]{40})(?![0-9A-Za-z])"
)
_HOOK = r"(?i)https?://[^\s\"'<>]{1,256}?/(?:incoming)?(?:web)?hooks?(?:b2)?/([^\s\"'<>]{16,512})"

FORMS: Tuple[Form, ...] = tuple(
    Form(*row)
    for row in (
        # models and experiments
        ("hf_", "hf-token", r"hf_[A-Za-z0-9]{16,256}", GITLEAKS),
        ("api_org_", "hf-token", r"api_org_[A-Za-z0-9]{16,256}", GITLEAKS),
        # Of OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse, Stability and others.
        (
            "sk-",
            "sk-key",
            r"sk-(?:[A-Za-z0-9]{1,12}-){0,3}[A-Za-z0-9_]{16,512}[A-Za-z0-9_-]{0,512}",
            GITLEAKS,
        ),
        ("csk-", "cerebras-key", r"csk-[a-z0-9]{32,64}", BETTERLEAKS),
        ("wandb_v1_", "wandb-key", r"wandb_v1_[A-Za-z0-9_-]{32,256}", BETTERLEAKS),
        ("wandb", "wandb-key", _WANDB, BETTERLEAKS),
        ("WANDB", "wandb-key", _WANDB, BETTERLEAKS),
        ("W&B", "wandb-key", _WANDB, BETTERLEAKS),
        ("Weights", "wandb-key", _WANDB, BETTERLEAKS),
        ("KGAT_", "kaggle-token", r"KGAT_[A-Za-z0-9_-]{16,128}", "kaggle"),
        (
            "username",
            "kaggle-key",
            r"[\"']username[\"']: ?[\"'][\w.-]{1,64}[\"'], ?[\"']key[\"']: ?[\"']([0-9a-f]{32})",
            "kaggle",
        ),
        ("r8_", "replicate-token", r"r8_[A-Za-z0-9]{20,64}", BETTERLEAKS),
        ("gsk_", "groq-key", r"gsk_[A-Za-z0-9]{32,128}", BETTERLEAKS),
        ("nvapi-", "nvidia-key", r"nvapi-[A-Za-z0-9_-]{16,256}", BETTERLEAKS),
        ("xai-", "xai-key", r"xai-[A-Za-z0-9_-]{32,256}", BETTERLEAKS),
        ("pplx-", "perplexity-key", r"pplx-[A-Za-z0-9]{32,128}", GITLEAKS),
        ("tgp_v1_", "together-key", r"tgp_v1_[A-Za-z0-9_-]{32,128}", BETTERLEAKS),
        ("pcsk_", "pinecone-key", r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{32,128}", BETTERLEAKS),
        ("lsv2_", "langsmith-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{8,16}", BETTERLEAKS),
        ("rpa_", "runpod-key", r"rpa_[A-Za-z0-9]{30,64}", BETTERLEAKS),
        ("tvly-", "tavily-key", r"tvly-(?:[a-z]{1,8}-)?[A-Za-z0-9]{24,64}", "tavily"),
        ("eyJhcGlf", "neptune-token", r"eyJhcGlf[A-Za-z0-9+/_-]{40,1024}={0,2}", "neptune"),
        ("dapi", "databricks-token", r"dapi[a-f0-9]{32}(?:-\d)?", GITLEAKS),
        ("fw_", "fireworks-key", r"fw_[A-Za-z0-9]{18,64}", "fireworks"),
        ("secret_", "lambda-key", r"secret_[\w-]{1,32}_[0-9a-f]{32}\.[A-Za-z0-9]{16,64}", "lambda"),
        ("--token-id", "modal-token", r"--token-id[ =](ak-[A-Za-z0-9]{16,64})", "modal"),
        ("as-", "modal-token", r"as-[A-Za-z0-9]{22}(?![\w-])", "modal"),
        ("pnu_", "prefect-key", r"pnu_[A-Za-z0-9]{32,64}", GITLEAKS),
        # code and packages
        ("ghp_", "github-token", r"ghp_[A-Za-z0-9]{16,256}", GITLEAKS),
        ("gho_", "github-token", r"gho_[A-Za-z0-9]{16,256}", GITLEAKS),
        ("ghs_", "github-token", r"ghs_[A-Za-z0-9]{16,256}", GITLEAKS),
        ("ghu_", "github-token", r"ghu_[A-Za-z0-9]{16,256}", GITLEAKS),
        ("ghr_", "github-token", r"ghr_[A-Za-z0-9]{16,256}", GITLEAKS),
        ("github_pat_", "github-token", r"github_pat_[A-Za-z0-9_]{16,256}", GITLEAKS),
        (
            "gl",
            "gitlab-token",
            (
                r"gl(?:pat|dt|ft|rt|cbt|imt|ptt|soat|agent|oas"
                r"|ffct)-[A-Za-z0-9_-]{16,1024}(?:\.[0-9a-z]{2,9}){0,2}"
            ),
            GITLEAKS,
        ),
        ("GR1348941", "gitlab-token", r"GR1348941[\w-]{16,64}", GITLEAKS),
        ("ATATT3x", "atlassian-token", r"ATATT3x[A-Za-z0-9_=-]{16,512}", GITLEAKS),
        ("ATBB", "bitbucket-password", r"ATBB[A-Za-z0-9]{16,64}", BETTERLEAKS),
        ("npm_", "npm-token", r"npm_[A-Za-z0-9]{30,64}", GITLEAKS),
        ("pypi-Ag", "pypi-token", r"pypi-Ag[A-Za-z0-9_-]{16,1024}", GITLEAKS),
        ("rubygems_", "rubygems-key", r"rubygems_[a-f0-9]{32,64}", GITLEAKS),
        ("dckr_", "docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,64}", BETTERLEAKS),
        (
            "SWMTKN-1-",
            "docker-swarm-token",
            r"SWMTKN-1-[a-z0-9]{32,64}-[a-z0-9]{16,32}",
            BETTERLEAKS,
        ),
        ("AKCp", "artifactory-key", r"AKCp[A-Za-z0-9]{48,96}", GITLEAKS),
        ("cmVmd", "artifactory-token", r"cmVmd[A-Za-z0-9]{48,96}", GITLEAKS),
        ("CCIPAT_", "circleci-token", r"CCIPAT_[A-Za-z0-9]{16,32}_[a-z0-9]{32,64}", BETTERLEAKS),
        ("lin_api_", "linear-key", r"lin_api_[A-Za-z0-9]{32,64}", GITLEAKS),
        ("ntn_", "notion-token", r"ntn_[A-Za-z0-9]{40,64}", GITLEAKS),
        # clouds
        ("AKIA", "aws-access-key", r"AKIA[0-9A-Z]{16}(?![0-9A-Za-z])", GITLEAKS),
        ("ASIA", "aws-access-key", r"ASIA[0-9A-Z]{16}(?![0-9A-Za-z])", GITLEAKS),
        ("ABIA", "aws-access-key", r"ABIA[0-9A-Z]{16}(?![0-9A-Za-z])", GITLEAKS),
        ("ACCA", "aws-access-key", r"ACCA[0-9A-Z]{16}(?![0-9A-Za-z])", GITLEAKS),
        ("ABSK", "aws-bedrock-key", r"ABSK[A-Za-z0-9+/]{64,512}={0,2}", GITLEAKS),
        (
            "bedrock-api-key-",
            "aws-bedrock-key",
            r"bedrock-api-key-[A-Za-z0-9+/]{32,2048}={0,2}",
            GITLEAKS,
        ),
        ("AIza", "google-key", r"AIza[0-9A-Za-z_-]{35}", GITLEAKS),
        ("AQ.Ab8", "google-key", r"AQ\.Ab8[A-Za-z0-9_-]{32,128}", BETTERLEAKS),
        ("ya29.", "google-oauth", r"ya29\.[A-Za-z0-9_-]{16,2048}", "google"),
        ("1//0", "google-oauth", r"1//0[A-Za-z0-9_-]{32,512}", "google"),
        ("GOCSPX-", "google-client-secret", r"GOCSPX-[A-Za-z0-9_-]{20,64}", "google"),
        ("sig=", "azure-sas", r"(?<![A-Za-z0-9_])sig=([A-Za-z0-9%+/_-]{20,512}={0,2})", "azure"),
        ("sig%3D", "azure-sas", r"sig%3D([A-Za-z0-9%+/_-]{20,512})", "azure"),
        ("AccountKey=", "azure-key", r"AccountKey=([A-Za-z0-9+/]{40,128}={0,2})", DETECT),
        ("Q~", "azure-client-secret", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}", GITLEAKS),
        ("LTAI", "alibaba-access-key", r"LTAI[A-Za-z0-9]{12,28}(?![A-Za-z0-9])", GITLEAKS),
        ("AKID", "tencent-access-key", r"AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])", "tencent"),
        ("_v1_", "digitalocean-token", r"do[opr]_v1_[a-f0-9]{32,64}", GITLEAKS),
        ("fm2_", "fly-token", r"fm2_[A-Za-z0-9+/]{64,1024}={0,3}", GITLEAKS),
        ("HRKU-", "heroku-key", r"HRKU-[A-Za-z0-9_-]{32,64}", GITLEAKS),
        ("pul-", "pulumi-token", r"pul-[a-f0-9]{40}", GITLEAKS),
        ("hvs.", "vault-token", r"hvs\.[\w-]{24,256}", GITLEAKS),
        ("hvb.", "vault-token", r"hvb\.[\w-]{24,512}", GITLEAKS),
        (".atlasv1.", "terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{48,128}", GITLEAKS),
        (
            "dp.",
            "doppler-token",
            r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,64}",
            GITLEAKS,
        ),
        ("ops_eyJ", "onepassword-token", r"ops_eyJ[A-Za-z0-9+/_-]{64,4096}={0,3}", GITLEAKS),
        ("AGE-SECRET-KEY-1", "age-key", r"AGE-SECRET-KEY-1[0-9A-Z]{32,64}", GITLEAKS),
        ("sha256~", "openshift-token", r"sha256~[\w-]{43}(?![\w-])", GITLEAKS),
        ("tskey-", "tailscale-key", r"tskey-[a-z]{2,12}-[A-Za-z0-9_-]{16,64}", BETTERLEAKS),
        ("glc_", "grafana-token", r"glc_[A-Za-z0-9+/]{32,400}={0,3}", GITLEAKS),
        ("glsa_", "grafana-token", r"glsa_[A-Za-z0-9]{16,32}(?:_[A-Fa-f0-9]{1,8})?", GITLEAKS),
        ("sntrys_", "sentry-token", r"sntrys_[A-Za-z0-9+/=_]{32,1024}", GITLEAKS),
        ("sntryu_", "sentry-token", r"sntryu_[a-f0-9]{32,64}", GITLEAKS),
        ("NRAK-", "newrelic-key", r"NRAK-[A-Z0-9]{27}", GITLEAKS),
        ("pscale_", "planetscale-token", r"pscale_(?:tkn|oauth|pw)_[\w=.-]{32,64}", GITLEAKS),
        ("napi_", "neon-key", r"napi_[a-z0-9]{48,64}", BETTERLEAKS),
        ("sbp_", "supabase-token", r"sbp_[a-z0-9_-]{40}", BETTERLEAKS),
        ("figd_", "figma-token", r"figd_[A-Za-z0-9_-]{32,64}", BETTERLEAKS),
        # messages and money
        ("xox", "slack-token", r"xox[abcdeoprs][-.][A-Za-z0-9.%/+-]{11,512}", GITLEAKS),
        ("xapp-", "slack-token", r"xapp-\d-[A-Za-z0-9-]{16,256}", GITLEAKS),
        (
            "hooks.slack.com/",
            "slack-hook",
            r"hooks\.slack\.com/[a-z]{4,12}/([A-Za-z0-9+/_-]{16,256})",
            GITLEAKS,
        ),
        ("/webhooks/", "discord-hook", r"/webhooks/\d{5,25}/([\w-]{16,256})", "discord"),
        ("hook", "hook", _HOOK, GITLEAKS),
        ("Hook", "hook", _HOOK, GITLEAKS),
        (
            ".",
            "discord-token",
            r"[MNO](?<![\w.-][MNO])[\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])",
            DETECT,
        ),
        (
            ":",
            "telegram-token",
            r"(?:bot)?\d{8,12}:(?=[\w-]{0,34}[A-Z])[A-Za-z0-9_-]{35}(?![\w-])",
            DETECT,
        ),
        ("SG.", "sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}", GITLEAKS),
        ("key-", "mailgun-key", r"key-[a-f0-9]{24,32}(?![A-Za-z0-9])", GITLEAKS),
        ("-us", "mailchimp-key", r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])", DETECT),
        ("xkeysib-", "brevo-key", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}", GITLEAKS),
        ("SK", "twilio-key", r"SK[0-9a-f]{32}(?![0-9A-Za-z])", GITLEAKS),
        ("_live_", "stripe-key", r"[sr]k_live_[A-Za-z0-9]{10,256}", GITLEAKS),
        ("_test_", "stripe-key", r"[sr]k_test_[A-Za-z0-9]{10,256}", GITLEAKS),
        ("whsec_", "stripe-hook-secret", r"whsec_[A-Za-z0-9+/]{24,128}={0,2}", "stripe"),
        ("shp", "shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,32}", GITLEAKS),
        ("sq0", "square-token", r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,64}", GITLEAKS),
        ("EAA", "meta-token", r"EAA[A-Z][A-Za-z0-9]{32,512}", GITLEAKS),
        ("EAAA", "square-token", r"EAAA[A-Za-z0-9_-]{48,64}(?![\w-])", GITLEAKS),
        ("sl.", "dropbox-token", r"sl\.(?:u\.)?[A-Za-z0-9_-]{64,2048}", GITLEAKS),
        ("pat", "airtable-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{32,64}", GITLEAKS),
        (
            "st.",
            "infisical-token",
            r"st\.[0-9a-f-]{24,36}\.[0-9a-f]{16,64}\.[0-9a-f]{16,64}",
            BETTERLEAKS,
        ),
        ("PMAK-", "postman-key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", GITLEAKS),
        # what is no single service's
        (
            "$",
            "password-hash",
            (
                r"\$(?:1|2[abxy]|5|6|7|y|gy|apr1|argon2(?:id|i|d)|pbkdf2[\w-]{0,16}|scrypt)"
                r"\$(?:[\w=,.]{1,64}\$){0,3}[A-Za-z0-9./+=]{16,256}"
            ),
            "crypt(5)",
        ),
        ("S", "nkey-seed", r"S[ACNOUX][A-Z2-7]{56}(?![A-Z2-7])", "nats"),
        (
            "eyJ",
            "jwt",
            (
                r"(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]{6,4096}\.(?:eyJ[A-Za-z0-9_-]{4,8192}"
                r"(?:\.[A-Za-z0-9_-]{0,2048})?|[A-Za-z0-9_-]{6,8192}\.[A-Za-z0-9_-]{0,2048})"
            ),
            GITLEAKS,
        ),
        (
            "Basic ",
            "basic-auth",
            r"\bBasic ([A-Za-z0-9+/]{10,1024}={1,2})(?![A-Za-z0-9])",
            GITLEAKS,
        ),
        (" password ", "netrc-password", r"\blogin \S{1,256} password (\S{1,256})", "netrc"),
        ("key=", "url-key", r"[?&]key=([A-Za-z0-9_-]{16,512})", "google"),
        ("code=", "url-code", r"[?&]code=([A-Za-z0-9%./+=_-]{20,512})", "azure"),
        (
            "ignature=",
            "url-signature",
            r"[?&][A-Za-z-]{0,16}[Ss]ignature=([A-Za-z0-9%./+=_~-]{16,1024})",
            "aws",
        ),
    )
)
