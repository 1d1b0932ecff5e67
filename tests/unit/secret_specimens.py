"""Secrets of published forms, drawn at run time: this file holds no text that a scanner would
take for one.
"""

from __future__ import annotations

import base64
import random
import string
from typing import NamedTuple

HEX, LOWER, UPPER = (
    "0123456789abcdef",
    string.ascii_lowercase + string.digits,
    string.ascii_uppercase + string.digits,
)
BASE62 = string.ascii_letters + string.digits


class Specimen(NamedTuple):
    """`secret` must never be found; `text` is how an error message shows it, `variable` a name
    that people give it.
    """

    name: str
    secret: str
    text: str
    variable: str = "SERVICE_SETTING"


def specimens() -> list[Specimen]:
    """Return some eighty, the same ones each time."""
    draw = random.Random(20)

    def of(signs: str, length: int) -> str:
        made = "".join(draw.choice(signs) for _ in range(length - 3))
        return made + "".join(
            draw.choice([sign for sign in signs if test(sign)] or signs)
            for test in (str.isupper, str.islower, str.isdigit)
        )

    def bare(name: str, secret: str, variable: str = "SERVICE_SETTING") -> Specimen:
        return Specimen(name, secret, f"request with {secret} was refused", variable)

    def within(name: str, secret: str, text: str, variable: str = "SERVICE_URL") -> Specimen:
        return Specimen(name, secret, text.format(secret), variable)

    made = [
        bare("hugging face", "hf" + "_" + of(string.ascii_letters, 34)),
        bare("openai", "sk" + "-proj-" + of(BASE62, 74) + "T3Blbk" + "FJ" + of(BASE62, 74)),
        bare("anthropic", "sk" + "-ant-api03-" + of(BASE62 + "_-", 93) + "AA"),
        bare("openrouter", "sk" + "-or-v1-" + of(HEX, 64)),
        bare("cerebras", "csk" + "-" + of(LOWER, 48)),
        bare("wandb v1", "wandb" + "_v1_" + of(BASE62, 77)),
        within("wandb", of(HEX, 40), "wandb: ERROR user is not logged in with {}", "WANDB_API_KEY"),
        within(
            "weights and biases",
            of(HEX, 40),
            "cannot log in to W&B: {} is not known",
            "WANDB_API_KEY",
        ),
        bare("kaggle token", "KGAT" + "_" + of(HEX, 32)),
        within("kaggle key", of(HEX, 32), '{{"username":"somebody","key":"{}"}}', "KAGGLE_KEY"),
        bare("replicate", "r8" + "_" + of(BASE62, 37)),
        bare("groq", "gsk" + "_" + of(BASE62, 52)),
        bare("nvidia", "nvapi" + "-" + of(BASE62 + "_-", 64)),
        bare("xai", "xai" + "-" + of(BASE62, 80)),
        bare("perplexity", "pplx" + "-" + of(BASE62, 48)),
        bare("together", "tgp" + "_v1_" + of(BASE62 + "_-", 43)),
        bare("pinecone", "pcsk" + "_" + of(BASE62, 5) + "_" + of(BASE62, 63)),
        bare("langsmith", "lsv2" + "_pt_" + of(HEX, 32) + "_" + of(HEX, 10)),
        bare("runpod", "rpa" + "_" + of(UPPER, 40) + of(BASE62, 6)),
        bare("databricks", "dapi" + of(HEX, 32)),
        bare("prefect", "pnu" + "_" + of(BASE62, 36)),
        *(
            bare(f"github {kind}", kind + "_" + of(BASE62, 36))
            for kind in ("ghp", "gho", "ghs", "ghu", "ghr")
        ),
        bare("github fine-grained", "github" + "_pat_" + of(BASE62, 22) + "_" + of(BASE62, 59)),
        *(
            bare(f"gitlab {kind}", kind + "-" + of(BASE62, 20))
            for kind in ("glpat", "gldt", "glrt", "glcbt")
        ),
        bare("npm", "npm" + "_" + of(BASE62, 36)),
        bare("pypi", "pypi" + "-AgEIcHlwaS5vcmc" + of(BASE62 + "_-", 80)),
        bare("docker", "dckr" + "_pat_" + of(BASE62 + "_-", 27)),
        bare("rubygems", "rubygems" + "_" + of(HEX, 48)),
        bare("atlassian", "ATATT" + "3xFfGF0" + of(BASE62 + "_-", 170)),
        bare("artifactory", "AKC" + "p" + of(BASE62, 69)),
        bare("linear", "lin" + "_api_" + of(BASE62, 40)),
        bare("notion", "ntn" + "_" + of("0123456789", 11) + of(BASE62, 35)),
        bare("aws access key", "AKI" + "A" + of(string.ascii_uppercase + "234567", 16)),
        bare("aws session key", "ASI" + "A" + of(string.ascii_uppercase + "234567", 16)),
        within(
            "aws secret",
            of(BASE62 + "+/", 40),
            "aws_secret_access_key = {}",
            "AWS_SECRET_ACCESS_KEY",
        ),
        bare("bedrock", "ABS" + "K" + of(BASE62, 120)),
        within(
            "aws signature",
            of(HEX, 64),
            "GET https://bucket.s3.amazonaws.com/x?X-Amz-Expires=60&X-Amz-Signature={}",
            "X_AMZ_SIGNATURE_SECRET",
        ),
        bare("google key", "AIz" + "a" + of(BASE62 + "_-", 35)),
        bare("google oauth", "ya29" + "." + of(BASE62 + "_-", 120)),
        bare("google refresh", "1//" + "0" + of(BASE62 + "_-", 60)),
        bare("google client secret", "GOCSPX" + "-" + of(BASE62 + "_-", 28)),
        within(
            "azure sas",
            of(BASE62, 40) + "%3D",
            "https://a.blob.core.windows.net/c/f.pt?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig={}",
            "BLOB_SAS_TOKEN",
        ),
        within(
            "azure account key",
            of(BASE62 + "+/", 86) + "==",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core",
            "AZURE_STORAGE_KEY",
        ),
        bare("azure client secret", of(BASE62, 3) + "8" + "Q~" + of(BASE62, 34)),
        bare("alibaba", "LTA" + "I" + of(BASE62, 20)),
        bare("digitalocean", "dop" + "_v1_" + of(HEX, 64)),
        bare("fly", "fm" + "2_" + of(BASE62, 120)),
        bare("heroku", "HRKU" + "-AA" + of(BASE62, 58)),
        bare("pulumi", "pul" + "-" + of(HEX, 40)),
        bare("vault", "hvs" + "." + of(BASE62, 95)),
        bare("terraform", of(BASE62, 14) + ".atlas" + "v1." + of(BASE62, 64)),
        bare("doppler", "dp" + ".pt." + of(BASE62, 43)),
        bare("one password", "ops" + "_eyJ" + of(BASE62, 260)),
        bare("age", "AGE-SECRET" + "-KEY-1" + of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
        bare("openshift", "sha256" + "~" + of(BASE62, 43)),
        bare("tailscale", "tskey" + "-auth-" + of(BASE62, 32)),
        bare("grafana", "glsa" + "_" + of(BASE62, 32) + "_" + of(HEX, 8)),
        bare("sentry", "sntryu" + "_" + of(HEX, 64)),
        within(
            "sentry dsn", of(HEX, 32), "cannot reach https://{}@o1.ingest.sentry.io/2", "SENTRY_DSN"
        ),
        bare("new relic", "NRA" + "K-" + of(UPPER, 27)),
        bare(
            "slack bot",
            "xox" + "b-" + of("0123456789", 12) + "-" + of("0123456789", 12) + "-" + of(BASE62, 24),
        ),
        bare(
            "slack app",
            "xap" + "p-1-" + of(UPPER, 11) + "-" + of("0123456789", 13) + "-" + of(HEX, 64),
        ),
        within(
            "slack hook",
            f"T{of(UPPER, 8)}/B{of(UPPER, 8)}/{of(BASE62, 24)}",
            "POST https://hooks.slack.com/services/{} 404",
            "SLACK_WEBHOOK",
        ),
        within(
            "discord hook",
            of(BASE62 + "_-", 68),
            "POST https://discord.com/api/webhooks/123456789012345678/{} 404",
            "DISCORD_WEBHOOK",
        ),
        within(
            "teams hook",
            of(HEX, 32),
            "POST https://x.webhook.office.com/webhookb2/{}/IncomingWebhook/1 404",
            "TEAMS_WEBHOOK",
        ),
        bare("discord bot", f"M{of(BASE62, 23)}.{of(BASE62, 6)}.{of(BASE62, 38)}"),
        within(
            "telegram bot",
            "123456789:" + "AA" + of(BASE62 + "_-", 33),
            "POST https://api.telegram.org/bot{}/sendMessage 401",
        ),
        bare("sendgrid", "SG" + "." + of(BASE62, 22) + "." + of(BASE62, 43)),
        bare("mailgun", "key" + "-" + of(HEX, 32)),
        bare("mailchimp", of(HEX, 32) + "-us" + "12"),
        bare("twilio", "S" + "K" + of(HEX, 32)),
        bare("stripe", "sk" + "_live_" + of(BASE62, 24)),
        bare("shopify", "shp" + "at_" + of(HEX, 32)),
        bare("square", "sq0" + "atp-" + of(BASE62, 22)),
        bare("postman", "PMA" + "K-" + of(HEX, 24) + "-" + of(HEX, 34)),
        bare(
            "jwt",
            ".".join(
                base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
                for part in ('{"alg":"HS256"}', '{"sub":"1234567890"}', of(BASE62, 32))
            ),
        ),
        within("bearer", of(BASE62, 40), "Authorization: Bearer {}", "AUTHORIZATION"),
        within(
            "basic",
            base64.b64encode(f"user:{of(BASE62, 11)}".encode()).decode(),
            "sent Basic {} to the proxy",
            "PROXY_AUTH",
        ),
        within(
            "password in a sentence",
            "Tr0ub" + "4dor&3",
            "login failed, the password is {}",
            "DB_PASSWORD",
        ),
        within(
            "plain password in a sentence",
            "sword" + "fishery",
            "login failed, the password is {}.",
            "DB_PASSWORD",
        ),
        within(
            "password of an address",
            "Tr0ub" + "4dor3",
            "postgres://somebody:{}@db/x refused",
            "DB_PASSWORD",
        ),
        within(
            "curl user", "Tr0ub" + "4dor5", "+ curl -s -u somebody:{} https://host/x", "CURL_PASS"
        ),
        within("unknown name", of(BASE62, 40), "exported QUUX={} for the workers", "QUUX"),
        within("token in a sentence", of(BASE62, 32), "invalid token {} for this project", "QUUX"),
        within(
            "netrc",
            "Tr0ub" + "4dor7",
            "machine api.x.ai login somebody password {}",
            "NETRC_PASSWORD",
        ),
    ]
    assert len({one.secret for one in made}) == len(made) >= 50
    return made
