"""Published forms of secrets, one a row: text that must be there, stand-in, pattern, source.

A pattern is searched only in texts that hold its literal, and every repetition in it is bounded, so
that reading stays linear. Where a pattern has a group, the group is the secret, else all of it.
Least lengths are shorter than the published ones: a token that a log cut off opens doors as well.

Restated from gitleaks 8.30 (config/gitleaks.toml, July 2026), betterleaks
(config/betterleaks.toml), detect-secrets 1.5 (plugins/) and trufflehog (pkg/detectors, April 2026),
and where none has a form from what the service documents.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple, Pattern, Tuple

GITLEAKS, BETTERLEAKS, DETECT = "gitleaks", "betterleaks", "detect-secrets"
TRUFFLEHOG = "trufflehog"


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
# The service's own name stands before it in capitals: ZENPROKEY_, ZENKEY_.
_NAMED_KEY = (
    r"[A-Z]{3,16}KEY_(?=[A-Za-z+/_-]{0,64}[0-9])(?=[A-Z0-9+/_-]{0,64}[a-z])"
    r"[A-Za-z0-9+/_-]{32,2048}={0,2}"
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
        (
            "sk-",
            "sk-key",
            r"sk-(?:[a-z0-9]{1,12}-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "langfuse",
        ),
        ("sk_", "elevenlabs-key", r"sk_[0-9a-f]{40,64}(?![0-9A-Za-z])", "elevenlabs"),
        ("jina_", "jina-key", r"jina_[0-9a-f]{32}[A-Za-z0-9_-]{16,64}", "jina"),
        ("fc-", "firecrawl-key", r"fc-[0-9a-f]{32}(?![0-9A-Za-z-])", "firecrawl"),
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
        ("KEY_", "service-key", _NAMED_KEY, "zenml"),
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
        # Session tokens of AWS are base64 of `origin_ec` or `er/aws` behind some bytes.
        (
            "JpZ2luX2Vj",
            "aws-session-token",
            r"IQoJb3JpZ2luX2Vj[A-Za-z0-9+/%]{16,4096}={0,2}",
            "aws",
        ),
        (
            "oGZXIvYXdz",
            "aws-session-token",
            r"[A-Za-z0-9]{2}oGZXIvYXdz[A-Za-z0-9+/%]{16,4096}={0,2}",
            "aws",
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
        # services of all kinds, whose keys begin with their name
        (
            "A3-",
            "onepassword-key",
            r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){1,3}",
            GITLEAKS,
        ),
        ("p8e-", "adobe-secret", r"p8e-[A-Za-z0-9]{24,32}", GITLEAKS),
        (
            ".acc",
            "authress-key",
            r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{20,120}",
            GITLEAKS,
        ),
        ("4b1d", "clickhouse-key", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])", GITLEAKS),
        ("CLOJARS_", "clojars-token", r"(?i:CLOJARS_)[a-z0-9]{32,60}", GITLEAKS),
        ("v1.0-", "cloudflare-ca-key", r"v1\.0-[A-Za-z0-9-]{64,171}", GITLEAKS),
        ("cf", "cloudflare-key", r"cf(?:k|ut|at)_[A-Za-z0-9]{32,64}", TRUFFLEHOG),
        ("vc", "vercel-token", r"vc[acikpr]_[A-Za-z0-9]{24,128}", "vercel"),
        ("sb_secret_", "supabase-key", r"sb_secret_[A-Za-z0-9_-]{20,64}", "supabase"),
        ("CFPAT-", "contentful-token", r"CFPAT-[A-Za-z0-9_-]{32,43}", TRUFFLEHOG),
        ("duffel_", "duffel-token", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{24,43}", GITLEAKS),
        ("dt0", "dynatrace-token", r"dt0[a-z]\d{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{32,64}", GITLEAKS),
        ("EZ", "easypost-key", r"EZ[AT]K[A-Za-z0-9]{40,54}", GITLEAKS),
        ("FLWSECK", "flutterwave-key", r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,32}(?:-X)?", GITLEAKS),
        ("fio-u-", "frameio-token", r"fio-u-[A-Za-z0-9_=-]{40,64}", GITLEAKS),
        ("gitlab_session=", "gitlab-session", r"_gitlab_session=([0-9a-z]{24,32})", GITLEAKS),
        ("eyJrIjoi", "grafana-key", r"eyJrIjoi[A-Za-z0-9]{48,400}={0,3}", GITLEAKS),
        (
            "at.",
            "harness-key",
            r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{12,20}",
            GITLEAKS,
        ),
        ("ico-", "infracost-token", r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])", GITLEAKS),
        ("-s4t2", "intra42-secret", r"[su]-s4t2(?:ud|af)-[a-f0-9]{32,64}", GITLEAKS),
        ("ZXlK", "jwt", r"ZXlK[A-Za-z0-9+/_-]{60,8192}={0,2}", GITLEAKS),
        ("_mmk", "maxmind-key", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", GITLEAKS),
        ("rdme_", "readme-key", r"rdme_[a-z0-9]{48,70}", GITLEAKS),
        ("tk-us-", "scalingo-token", r"tk-us-[\w-]{32,48}", GITLEAKS),
        ("sm_", "settlemint-token", r"sm_[aps]at_[A-Za-z0-9]{16}(?![A-Za-z0-9])", GITLEAKS),
        ("shippo_", "shippo-token", r"shippo_(?:live|test)_[a-fA-F0-9]{24,40}", GITLEAKS),
        (
            "sgp_",
            "sourcegraph-token",
            r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{24,40}",
            GITLEAKS,
        ),
        ("slk_", "sourcegraph-token", r"slk_[a-f0-9]{48,64}", TRUFFLEHOG),
        ("_prod_", "stripe-key", r"[sr]k_prod_[A-Za-z0-9]{10,256}", GITLEAKS),
        ("AQVN", "yandex-key", r"AQVN[A-Za-z0-9_-]{32,38}(?![\w-])", GITLEAKS),
        ("NRI", "newrelic-key", r"NRI[IQ]-[A-Za-z0-9_-]{24,32}", GITLEAKS),
        ("NRJS-", "newrelic-key", r"NRJS-[a-f0-9]{19}", GITLEAKS),
        ("tfp_", "typeform-token", r"tfp_[A-Za-z0-9_.=-]{32,64}", GITLEAKS),
        ("BBDC-", "bitbucket-token", r"BBDC-[A-Za-z0-9+/@_-]{32,50}", TRUFFLEHOG),
        ("bkua_", "buildkite-token", r"bkua_[a-z0-9]{32,40}", TRUFFLEHOG),
        ("bb_", "bannerbear-key", r"bb_(?:pr|ma)_[a-f0-9]{24,30}", TRUFFLEHOG),
        ("figp_", "figma-token", r"figp_[A-Za-z0-9_=-]{32,54}", TRUFFLEHOG),
        ("flb_live_", "fleetbase-key", r"flb_live_[A-Za-z0-9]{20}", TRUFFLEHOG),
        ("shltm_", "flexport-key", r"shltm_[A-Za-z0-9_-]{32,40}", TRUFFLEHOG),
        ("ramp_sec_", "ramp-secret", r"ramp_sec_[A-Za-z0-9]{32,48}", TRUFFLEHOG),
        ("rzp_", "razorpay-key", r"rzp_(?:live|test)_[A-Za-z0-9]{14}", TRUFFLEHOG),
        ("rh-api-", "robinhood-key", r"rh-api-[0-9a-fA-F-]{32,36}", TRUFFLEHOG),
        ("rootly_", "rootly-key", r"rootly_[a-f0-9]{48,64}", TRUFFLEHOG),
        (
            "salad_cloud_",
            "salad-key",
            r"salad_cloud_[0-9A-Za-z]{1,7}_[0-9A-Za-z]{7,235}",
            TRUFFLEHOG,
        ),
        ("sqco_", "sonar-token", r"sqco_[A-Za-z0-9]{40,59}", TRUFFLEHOG),
        ("thog-", "trufflehog-key", r"thog-(?:key|secret)-[0-9a-f]{16,32}", TRUFFLEHOG),
        ("BBFF-", "ubidots-key", r"BBFF-[0-9a-zA-Z]{30}", TRUFFLEHOG),
        (
            "VF.",
            "voiceflow-key",
            r"VF\.(?:(?:DM|WS)\.)?[a-fA-F0-9]{24}\.[a-zA-Z0-9]{16}",
            TRUFFLEHOG,
        ),
        ("1000.", "zoho-token", r"1000\.[a-f0-9]{32}\.[a-f0-9]{32}", TRUFFLEHOG),
        ("NF-", "nightfall-key", r"NF-[A-Za-z0-9]{32}(?![A-Za-z0-9])", TRUFFLEHOG),
        ("ub-c-", "pubnub-key", r"[ps]ub-c-[0-9a-z-]{28,36}", TRUFFLEHOG),
        ("sec-c-", "pubnub-key", r"sec-c-[A-Za-z0-9]{32,64}", TRUFFLEHOG),
        ("k_live_", "live-key", r"[ap]k_live_[A-Za-z0-9]{20,247}", TRUFFLEHOG),
        ("phx_", "posthog-key", r"phx_[A-Za-z0-9_]{32,48}", TRUFFLEHOG),
        ("pk_", "klaviyo-key", r"pk_(?:[A-Za-z0-9]{6}_)?[0-9a-f]{34}(?![0-9a-f])", TRUFFLEHOG),
        ("sk.", "mapbox-token", r"sk\.[A-Za-z0-9.-]{60,240}", TRUFFLEHOG),
        ("_secret_", "stripe-intent", r"pi_[A-Za-z0-9]{24}_secret_[A-Za-z0-9]{16,25}", TRUFFLEHOG),
        (
            "AP",
            "artifactory-key",
            r"AP[0-9A-F](?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{30,96}(?![A-Za-z0-9])",
            DETECT,
        ),
        (
            "softlayer.com/",
            "softlayer-key",
            r"softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{32,64})",
            DETECT,
        ),
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
        # A private key in base64, as Kubernetes keeps it; a certificate is none.
        (
            "LS0tLS1CRUdJTi",
            "private-key",
            r"LS0tLS1CRUdJTi(?!BDRVJU)[A-Za-z0-9+/]{16,8192}={0,2}",
            "kubernetes",
        ),
        (
            "_eyJ",
            "jwt",
            r"[a-z]{2,12}(?:_[a-z]{2,12}){0,2}_eyJ[A-Za-z0-9_-]{6,4096}(?:\.[A-Za-z0-9_-]{4,8192}){1,4}",
            "huggingface",
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
