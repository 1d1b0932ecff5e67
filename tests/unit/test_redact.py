"""Secrets go, everything else stays, and no text makes it slow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.redact import Redactor, clean
from trainprobe.secret_names import looks_secret

HF = "hf_" + "AbCdEfGhIjKlMnOpQrStUv"
SK = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1"
GHP = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
AKIA = "AKIA" + "IOSFODNN7EXAMPLE"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq83vEjRWeJASNFZ4\n-----END RSA PRIVATE"
    " KEY-----"
)
NOBODY = Redactor({})


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "WANDB_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN",
        "PGPASSWORD",
        "DB_PASSWORD",
        "MYSQL_PASSWD",
        "SENTRY_DSN",
        "apiKey",
        "api-key",
        "MY_KEY",
        "DB_PASS",
        "secret",
        "clientSecret",
        "GOOGLE_CREDENTIALS",
        "HTTP_COOKIE",
        "X-Auth-Token",
        "token",
        "access_token",
        "GITHUB_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "KEYBOARD",
        "monkey",
        "MASTER_ADDR",
        "TOKENIZERS_PARALLELISM",
        "tokenizer",
        "tokenizer_path",
        "max_tokens",
        "num_tokens",
        "eos_token",
        "pad_token_id",
        "key",
        "keys",
        "sort_key",
        "KeyError",
        "XAUTHORITY",
        "author",
        "turkey",
        "SECRETARY",
        "PASSED",
        "bypass",
        "compass",
        "RANK",
        "WORLD_SIZE",
        "NCCL_DEBUG",
        "CUDA_VISIBLE_DEVICES",
        "HF_TOKEN_PATH",
        "SSH_AUTH_SOCK",
        "passes",
    ],
)
def test_names_of_everything_else(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize(
    ("text", "secret", "shown"),
    [
        ("HF_TOKEN=abcdef python train.py", "abcdef", "HF_TOKEN=<hidden:HF_TOKEN> python train.py"),
        (
            "export DB_PASSWORD='two words'",
            "two words",
            "export DB_PASSWORD='<hidden:DB_PASSWORD>'",
        ),
        ("train.py --token abcdef --lr 0.1", "abcdef", "train.py --token <hidden:token> --lr 0.1"),
        ("train.py --api-key=xyz --lr 0.1", "xyz", "train.py --api-key=<hidden:api-key> --lr 0.1"),
        ("{'token': 'abc', 'lr': 1}", "abc", "{'token': '<hidden:token>', 'lr': 1}"),
        (
            r'"{\"password\": \"swordfish\"}"',
            "swordfish",
            r'"{\"password\": \"<hidden:password>\"}"',
        ),
        (
            "user=bob password=swordfish host=db",
            "swordfish",
            "user=bob password=<hidden:password> host=db",
        ),
        ("postgres://bob:p@ss@host/x", "p@ss", "postgres://bob:<hidden:url-password>@host/x"),
        ("redis://:pw@host:6379", ":pw@", "redis://:<hidden:url-password>@host:6379"),
        (
            "https://0123456789abcdef0123456789abcdef@o1.sentry.io/1",
            "0123456789abcdef",
            "https://<hidden:url-user>@o1.sentry.io/1",
        ),
        (
            "curl -H 'Authorization: Basic dXNlcjpwYXNz'",
            "dXNlcjpwYXNz",
            "curl -H 'Authorization: Basic <hidden:Authorization>'",
        ),
        ("sent bearer 0a1b2c3d4e5f", "0a1b2c3d4e5f", "sent bearer <hidden:bearer>"),
        (
            "s3://b/k?X-Amz-Signature=abcdef&x=1",
            "abcdef",
            "s3://b/k?X-Amz-Signature=<hidden:X-Amz-Signature>&x=1",
        ),
        (f"login with {HF}.", HF, "login with <hidden:hf-token>."),
        (f"key {SK}", SK, "key <hidden:sk-key>"),
        (
            f"clone https://{GHP}@github.com/a/b",
            GHP,
            "clone https://<hidden:github-token>@github.com/a/b",
        ),
        (f"({AKIA})", AKIA, "(<hidden:aws-access-key>)"),
        (f"got {JWT} back", JWT, "got <hidden:jwt> back"),
        (f"before\n{PEM}\nafter", "MIIEow", "before\n<hidden:private-key>\nafter"),
        (PEM.rpartition("\n")[0], "q83vEjRW", "<hidden:private-key>"),
    ],
)
def test_secrets_in_text(text: str, secret: str, shown: str) -> None:
    hidden, count = Redactor({}).text(text)
    assert hidden == shown
    assert secret not in hidden
    assert count == 1


@pytest.mark.parametrize(
    "text",
    [
        (
            "KEYBOARD=us MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 monkey: banana"
            " TOKENIZERS_PARALLELISM=false"
        ),
        "/models/tokenizers/llama-tokenizer.json",
        "tokenizer=/data/tok.model --tokenizer-path /data/tok --max-tokens 4096",
        "KeyError: 'token'",
        "KeyError: 'api_key'",
        "SyntaxError: invalid token: if",
        "token = next(tokens)",
        "eos_token='</s>' pad_token_id=0 max_tokens=512 tokens/s: 18432.5",
        "api_key = os.environ['X']",
        "connect(password=args.password, token=token)",
        "git@github.com:a/b ssh://git@host:22/x https://host/x?page=2",
        "sk-learn-contrib task-abcdefghijklmnopqrstuvwxyz disk-0123456789abcdefghij0123",
        "store key worker_1 = 7, cache_key=abc123, sort key: id7",
        "use_auth_token=True --use-auth-token train.py",
        "rank 3 waits in all_reduce #1204 (train.py:88), auth: none",
    ],
)
def test_what_only_looks_a_little_like_one_survives(text: str) -> None:
    assert Redactor({}).text(text) == (text, 0)


def test_values_of_the_environment_are_hidden_wherever_they_turn_up() -> None:
    redactor = Redactor(
        {
            "HF_TOKEN": "opaque-value-1",
            "DB_PASSWORD": "hunter2",
            "MY_TOKEN": "true",
            "A_KEY_PATH": "/etc/passwd",
            "SECRET_DIR": "/srv/x",
        }
    )
    assert redactor.text("user opaque-value-1 (hunter2) hunter22 true /etc/passwd /srv/x") == (
        "user <hidden:HF_TOKEN> (<hidden:DB_PASSWORD>) hunter22 true /etc/passwd /srv/x",
        2,
    )


def test_a_secret_has_one_stand_in_everywhere() -> None:
    redactor = Redactor({"WANDB_API_KEY": "0123456789abcdef"})
    assert redactor.data(["--api-key", "0123456789abcdef"])[0] == [
        "--api-key",
        "<hidden:WANDB_API_KEY>",
    ]
    assert redactor.data({"token": "found-in-a-config-77"})[0] == {"token": "<hidden:token>"}
    assert redactor.text("later: found-in-a-config-77")[0] == "later: <hidden:token>"


def test_nested_data_and_argument_pairs() -> None:
    data = {
        "argv": [
            "train.py",
            "--token",
            "abc",
            "--lr",
            "3",
            "--password=x1",
            "--tokenizer",
            "llama",
        ],
        "env": {"HF_TOKEN": "q", "RANK": "0", "deep": [{"db_password": "pw"}]},
        "sizes": {"tokens": 12, "key": "rank0", "token": 7, "auth": None, "secret": True},
    }
    assert Redactor({}).data(data) == (
        {
            "argv": [
                "train.py",
                "--token",
                "<hidden:token>",
                "--lr",
                "3",
                "--password=<hidden:password>",
                "--tokenizer",
                "llama",
            ],
            "env": {
                "HF_TOKEN": "<hidden:HF_TOKEN>",
                "RANK": "0",
                "deep": [{"db_password": "<hidden:db_password>"}],
            },
            "sizes": {"tokens": 12, "key": "rank0", "token": 7, "auth": None, "secret": True},
        },
        4,
    )


def test_numbers_that_json_lacks_and_data_without_end() -> None:
    deep: object = "bottom"
    for _ in range(500):
        deep = [deep]
    shown, _ = NOBODY.data({"a": float("nan"), "b": float("-inf"), "deep": deep})
    assert (shown["a"], shown["b"]) == ("nan", "-inf")
    assert "nested too deeply" in str(shown["deep"])


def test_binary_content_keeps_its_length() -> None:
    content = b"\x80\x02\0" + AKIA.encode() + b"\0\xffend"
    assert NOBODY.blob(content) == (b"\x80\x02\0" + b"*" * len(AKIA) + b"\0\xffend", 1)


def test_what_is_hidden_stays_as_it_is() -> None:
    redactor = Redactor({"HF_TOKEN": "opaque-value-1"})
    once, _ = redactor.text(f"HF_TOKEN=opaque-value-1 --token abcdef {JWT} https://bob:pw@host")
    assert redactor.text(once) == (once, 0)


def test_clean_takes_escapes_and_control_characters() -> None:
    assert (
        clean("a\x1b[31mred\x1b[0m\r\n50 %\r100 %\x00\x08\x1b]0;title\x07z\x9b1m\ttab\nü")
        == "ared\n50 %\n100 %z1m\ttab\nü"
    )
    assert clean("\x1b[" * 3 + "\ud800") == clean(clean("\x1b[" * 3 + "\ud800"))


@given(st.text(), st.text(min_size=0, max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_text_goes_through(text: str, value: str) -> None:
    shown, count = Redactor({"MY_TOKEN": value}).text(clean(text))
    assert isinstance(shown, str)
    assert count or shown == clean(text)
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in shown)


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "eyJ",
            "eyJaaaaaaa.",
            "-----BEGIN PRIVATE KEY-----",
            "sk-",
            "sk-a1-",
            "://a",
            "://a:@",
            "token",
            "token=",
            "token:",
            "--token ",
            "a-",
            "x",
        ),
        *(
            'password="',
            "password: '",
            "bearer ",
            "\x1b[",
            "\x1b]",
            "hf_",
            "key_",
            "A",
            "AKIA",
            "secret\\",
            "a%3D",
            "password%3D",
            "%3A%2F%2Fa%3A",
            "pin code: 1 ",
            "<password>",
            "login('a', ",
            "set_password('a', ",
            "api_key:\n",
            "token\\n",
            "db_pass | ",
            "$6$",
            "key = ",
            "=",
            " ",
            "\n",
        ),
    ],
)
def test_hostile_text_costs_no_more_than_its_size(unit: str) -> None:
    def cost_s(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(2):
            began = time.process_time()
            Redactor({}).text(clean(text))
            best = min(best, time.process_time() - began)
        return best

    small, large = cost_s(2**14), cost_s(2**18)
    assert large < 16 * 5 * max(small, 0.002), (
        "sixteen times the text took more than five times sixteen times as long: not linear"
    )


@pytest.mark.parametrize(
    "line",
    [
        "wandb: ERROR API key {} is not valid",
        "api_key given was {}, rejected",
        'Secret key: "{}" refused',
        "ACCESS KEY ({})",
    ],
)
def test_a_key_in_a_sentence_is_hidden(line: str) -> None:
    key = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
    shown, count = Redactor({}).text(line.format(key))
    assert key not in shown
    assert count >= 1


@pytest.mark.parametrize(
    "line", ["at commit {} of main", "the key of the cache entry is {}", "monkey {}"]
)
def test_a_hash_is_no_key(line: str) -> None:
    line = line.format("0a1b2c3d4e5f60718293a4b5c6d7e8f901234567")
    assert Redactor({}).text(line) == (line, 0)


def test_a_text_that_was_harmless_is_hidden_once_its_secret_is_known() -> None:
    redactor = Redactor({})
    before = redactor.data({"said": "open sesame123"})
    redactor.learn({"API_KEY": "sesame123"})
    assert (before, redactor.data({"said": "open sesame123"})) == (
        ({"said": "open sesame123"}, 0),
        ({"said": "open <hidden:API_KEY>"}, 1),
    )


def test_what_is_remembered_as_harmless_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainprobe.redact.MOST_SEEN", 10)
    redactor = Redactor({})
    redactor.data([f"text {number}" for number in range(200)] + ["x" * 1000])
    assert (len(redactor._seen) <= 10, max(map(len, redactor._seen)) < 1000) == (True, True)
