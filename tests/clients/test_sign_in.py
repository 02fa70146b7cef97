"""Sign-in at a real OpenLDAP server and at a real OpenID Connect provider."""

import base64
import hashlib
import os
import re
import shutil
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests
from catalogue import Server, pinakes
from certificates import certified
from running import PATIENCE_S, free_port, listening, printed_url, serving

HERE = Path(__file__).parent
SLAPD = shutil.which("slapd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
ADMIN = ["-x", "-D", "cn=admin,dc=example,dc=org", "-w", "secret-of-tests"]
DIRECTORY = """
dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=org
objectClass: organizationalUnit
ou: groups

dn: uid=anna,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: anna
cn: Anna (A.) Beispiel
sn: Beispiel
displayName: Anna Beispiel
mail: anna@example.org
userPassword: password-of-anna

dn: uid=ingestor,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: ingestor
cn: Somebody else
sn: Else
userPassword: password-of-another

dn: cn=group1,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: group1
member: uid=anna,ou=people,dc=example,dc=org

dn: cn=staff,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: staff
member: uid=anna,ou=people,dc=example,dc=org
"""


def stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


class Directory:
    """A separate OpenLDAP server."""

    def __init__(self, folder: Path) -> None:
        self.url, self.process = f"ldap://127.0.0.1:{free_port()}", None
        self.tls_url = f"ldaps://127.0.0.1:{free_port()}"
        self.authority = certified(folder)
        (folder / "data").mkdir()
        schemas = "".join(f"include /etc/ldap/schema/{it}.schema\n" for it in ["core", "cosine", "inetorgperson"])
        self.configuration = folder / "slapd.conf"
        self.configuration.write_text(
            f"{schemas}modulepath /usr/lib/ldap\nmoduleload back_mdb\nmoduleload memberof\n"
            f"TLSCertificateFile {folder / 'server.pem'}\nTLSCertificateKeyFile {folder / 'server.key'}\n"
            f"database mdb\nsuffix dc=example,dc=org\nrootdn cn=admin,dc=example,dc=org\nrootpw secret-of-tests\n"
            f"directory {folder / 'data'}\noverlay memberof\n"
        )
        self.start()
        self.run("ldapadd", DIRECTORY)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [SLAPD, "-f", self.configuration, "-h", f"{self.url} {self.tls_url}", "-d", "0"], stderr=subprocess.DEVNULL
        )
        listening(self.process, urlsplit(self.url).port)

    def run(self, command: str, ldif: str) -> None:
        done = subprocess.run(
            [command, *ADMIN, "-H", self.url], input=ldif, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    if SLAPD is None:
        pytest.skip("slapd is not installed (Debian: slapd, ldap-utils)")
    it = Directory(tmp_path_factory.mktemp("slapd"))
    yield it
    stop(it.process)


@pytest.fixture(scope="module")
def provider():
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = HERE / "oidc"
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True)
    process = subprocess.Popen(
        ["node", "provider.mjs"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield printed_url(process)
    finally:
        stop(process)


@pytest.fixture(scope="module")
def site(tmp_path_factory, directory, provider):
    """Starts a server that is configured by a SciCat site's own variables."""
    data = str(tmp_path_factory.mktemp("signed-in") / "data")
    imported = pinakes("user", "import", "--data", data, str(HERE / "functionalAccounts.json"))
    assert imported.returncode == 0, imported.stderr
    environment = {
        "LDAP_URL": directory.url,
        "LDAP_BIND_DN": "cn=admin,dc=example,dc=org",
        "LDAP_BIND_CREDENTIALS": "secret-of-tests",
        "LDAP_SEARCH_BASE": "ou=people,dc=example,dc=org",
        "LDAP_SEARCH_FILTER": "(uid={{username}})",
        "OIDC_ISSUER": provider,
        "OIDC_CLIENT_ID": "pinakes",
        "OIDC_CLIENT_SECRET": "a-secret-of-tests",
        "OIDC_CALLBACK_URL": "https://scicat.example.org/api/v3/auth/oidc/callback",
        "OIDC_SUCCESS_URL": "https://scicat.example.org/login",
        "OIDC_RETURN_URL": "/datasets",
        "OIDC_ACCESS_GROUPS_PROPERTY": "groups",
        "OIDC_ADDITIONAL_AUTHORIZED_PARTIES": "notebook, another",
    }
    with serving("--data", data, "--config", HERE / "pinakes.toml", environment=environment) as url:
        yield Server(url)


def log_in(site: Server, username: str, password: str, way: str = "ldap") -> requests.Response:
    body = {"username": username, "password": password}
    return requests.post(f"{site.v3}/auth/{way}", json=body, timeout=PATIENCE_S)


def who_am_i(site: Server, token: str) -> dict:
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{site.v3}/auth/whoami", headers=headers, timeout=PATIENCE_S).json()


def test_a_directory_says_who_somebody_is(site):
    for way in ["ldap", "msad"]:
        answer = log_in(site, "anna", "password-of-anna", way)
        assert answer.status_code == 201, answer.text
        user = answer.json()["user"]
        assert (user["username"], user["email"], user["authStrategy"]) == ("anna", "anna@example.org", way)
        shown = who_am_i(site, answer.json()["access_token"])
        assert set(shown["currentGroups"]) == {"group1", "staff"}
    identity = requests.get(
        f"{site.v3}/users/my/identity", timeout=PATIENCE_S,
        headers={"Authorization": f"Bearer {answer.json()['id']}"},
    ).json()
    assert identity["profile"]["displayName"] == "Anna Beispiel"
    assert identity["authStrategy"] == "msad"


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("anna", "password-of-another"), ("anna", ""), ("nobody", "x"), ("*", "password-of-anna"),
        ("anna)(uid=*", "password-of-anna"), ("", "x"), ("a" * 300, "x"),
        # A name in the directory gives no access to an account that was created here.
        ("ingestor", "password-of-another"),
        # Nor does a password kept here give access to the directory's.
        ("ingestor", "ingestor-of-tests"),
    ],
)
def test_a_directory_refuses(site, username, password):
    answer = log_in(site, username, password)
    assert answer.status_code == 401, answer.text


def test_groups_follow_the_directory(site, directory):
    change = "dn: cn=staff,ou=groups,dc=example,dc=org\nchangetype: modify\n{}: member\nmember: {}\n"
    anna, ingestor = (f"uid={it},ou=people,dc=example,dc=org" for it in ["anna", "ingestor"])
    directory.run("ldapmodify", change.format("add", ingestor) + "\n" + change.format("delete", anna))
    token = log_in(site, "anna", "password-of-anna").json()["access_token"]
    assert who_am_i(site, token)["currentGroups"] == ["group1"]
    directory.run("ldapmodify", change.format("add", anna))


def test_a_directory_that_is_down_is_said(site, directory):
    stop(directory.process)
    answer = log_in(site, "anna", "password-of-anna")
    assert answer.status_code == 502 and "secret-of-tests" not in answer.text, answer.text
    directory.start()
    assert log_in(site, "anna", "password-of-anna").status_code == 201


@pytest.mark.parametrize("is_starttls", [False, True])
@pytest.mark.parametrize(
    ("trusted", "expected"),
    # Authority from a setting, from the variable for the system's authorities, from neither, and only a wrong one.
    [("ca_file", 201), ("SSL_CERT_FILE", 201), ("", 502), ("another", 502)],
)
def test_a_directory_is_asked_over_tls(tmp_path, directory, is_starttls, trusted, expected):
    settings = tmp_path / "pinakes.toml"
    ldap = f"\n[accounts.ldap]\nstarttls = {str(is_starttls).lower()}\n"
    if trusted == "ca_file":
        ldap += f'ca_file = "{directory.authority}"\n'
    if trusted == "another":
        ldap += f'ca_file = "{certified(tmp_path)}"\n'
    settings.write_text((HERE / "pinakes.toml").read_text() + ldap)
    environment = {
        "LDAP_URL": directory.url if is_starttls else directory.tls_url,
        "LDAP_BIND_DN": "cn=admin,dc=example,dc=org",
        "LDAP_BIND_CREDENTIALS": "secret-of-tests",
        "LDAP_SEARCH_BASE": "ou=people,dc=example,dc=org",
    }
    if trusted == "SSL_CERT_FILE":
        environment["SSL_CERT_FILE"] = str(directory.authority)
    with serving("--data", str(tmp_path / "data"), "--config", settings, environment=environment) as url:
        answer = log_in(Server(url), "anna", "password-of-anna")
        assert answer.status_code == expected and "secret-of-tests" not in answer.text, answer.text


def test_who_fails_too_often_waits(site):
    statuses = [log_in(site, "guessed", "x", "login").status_code for _ in range(20)]
    assert set(statuses) == {401}
    answer = log_in(site, "guessed", "x", "login")
    assert answer.status_code == 429 and 0 < int(answer.headers["Retry-After"]) <= 301, answer.headers
    assert log_in(site, "user1", Server.password("user1"), "login").status_code == 201


class Form(HTMLParser):
    """Returns the first form of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.fields = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = attributes["action"]
        if tag == "input" and attributes.get("name"):
            self.fields[attributes["name"]] = attributes.get("value", "")


def through_the_provider(url: str, name: str, provider: str) -> str:
    """Acts as a browser: follows redirects and fills in forms until it reaches a URL that is not the provider's."""
    browser = requests.Session()
    answer = browser.get(url, allow_redirects=False, timeout=PATIENCE_S)
    for _ in range(12):
        if "Location" in answer.headers:
            target = urljoin(answer.url, answer.headers["Location"])
            if not target.startswith(provider):
                return target
            answer = browser.get(target, allow_redirects=False, timeout=PATIENCE_S)
            continue
        assert answer.status_code == 200, answer.text
        form = Form(answer.text)
        fields = form.fields | ({"login": name, "password": "any"} if "login" in form.fields else {})
        answer = browser.post(urljoin(answer.url, form.action), data=fields, allow_redirects=False, timeout=PATIENCE_S)
    raise AssertionError("the provider goes round in circles")


def begin(site: Server, **query: str) -> tuple[str, str]:
    """Returns the URL at which a login starts, and its cookie."""
    answer = requests.get(f"{site.v3}/auth/oidc", params=query, allow_redirects=False, timeout=PATIENCE_S)
    assert answer.status_code == 302, answer.text
    cookie = answer.headers["Set-Cookie"]
    assert all(it in cookie for it in ["HttpOnly", "SameSite=Lax", "Secure"]), cookie
    return answer.headers["Location"], cookie.split(";")[0]


def finish(site: Server, target: str, cookie: str) -> requests.Response:
    return requests.get(
        f"{site.v3}/auth/oidc/callback?{urlsplit(target).query}", headers={"Cookie": cookie},
        allow_redirects=False, timeout=PATIENCE_S,
    )


def test_a_provider_says_who_somebody_is(site, provider):
    url, cookie = begin(site, returnURL="/datasets/1")
    asked = parse_qs(urlsplit(url).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["nonce"] and asked["state"]
    target = through_the_provider(url, "max", provider)
    answer = finish(site, target, cookie)
    assert answer.status_code == 302, answer.text
    shown = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert answer.headers["Location"].startswith("https://scicat.example.org/login?")
    assert shown["returnUrl"] == ["/datasets/1"]
    user = who_am_i(site, shown["access-token"][0])
    assert (user["username"], user["email"], user["authStrategy"]) == ("max", "max@example.org", "oidc")
    assert (user["id"], user["currentGroups"]) == (shown["user-id"][0], ["group1", "beamline"])
    # A code is valid only once.
    assert finish(site, target, cookie).status_code == 401


def test_a_login_ends_where_it_began(site, provider):
    url, cookie = begin(site)
    other_url, other_cookie = begin(site, returnURL="https://evil.example.org/")
    target = through_the_provider(url, "max", provider)
    assert finish(site, target, "").status_code == 401, "without the cookie"
    assert finish(site, target, other_cookie).status_code == 401, "with that of another login"
    assert finish(site, re.sub("state=[^&]*", "state=x", target), cookie).status_code == 401
    target = through_the_provider(other_url, "max", provider)
    shown = parse_qs(urlsplit(finish(site, target, other_cookie).headers["Location"]).query)
    assert shown["returnUrl"] == ["/datasets"], "a login leads nowhere else"


def test_a_provider_opens_no_account_that_was_made_here(site, provider):
    url, cookie = begin(site)
    target = through_the_provider(url, "admin", provider)
    assert finish(site, target, cookie).status_code == 401


def id_token(provider: str, client: str, name: str) -> str:
    verifier = base64.urlsafe_b64encode(os.urandom(32)).rstrip(b"=")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=").decode()
    redirect = f"https://{client}.example.org/"
    query = {
        "client_id": client, "redirect_uri": redirect, "response_type": "code", "scope": "openid profile email",
        "code_challenge": challenge, "code_challenge_method": "S256",
    }
    url = requests.Request("GET", f"{provider}/auth", params=query).prepare().url
    code = parse_qs(urlsplit(through_the_provider(url, name, provider)).query)["code"][0]
    body = {
        "grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "client_id": client,
        "code_verifier": verifier.decode(),
    }
    answer = requests.post(f"{provider}/token", data=body, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    return answer.json()["id_token"]


def test_programs_bring_id_tokens(site, provider):
    def exchanged(token):
        return requests.post(f"{site.v3}/auth/oidc/token", json={"idToken": token}, timeout=PATIENCE_S)

    token = id_token(provider, "notebook", "max")
    answer = exchanged(token)
    assert answer.status_code == 201 and answer.json()["user"]["username"] == "max", answer.text
    head, body, signature = token.split(".")
    for wrong in [
        f"{head}.{body}.{signature[::-1]}", f"{head}.{body}.", "x", "", None,
        id_token(provider, "stranger", "max"),
    ]:
        assert exchanged(wrong).status_code == 401, wrong
