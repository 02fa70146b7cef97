//! Logins at an OpenID Connect provider: the authorization code flow with state, nonce and PKCE (OpenID Connect Core
//! 1.0, RFC 7636), and ID tokens that a client sends. Tokens are verified by the crate `openidconnect`.
//!
//! The state between the two halves of a login is kept in the browser as a signed cookie: any server of the
//! installation can finish a login that another one started, and only the browser that started a login can finish it.

pub(crate) mod known;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{
    CoreClient, CoreIdToken, CoreIdTokenVerifier, CoreJwsSigningAlgorithm, CoreProviderMetadata,
    CoreResponseType,
};
use openidconnect::{
    AccessToken, AuthenticationFlow, AuthorizationCode, ClientId, ClientSecret, CsrfToken, HttpRequest,
    HttpResponse, IssuerUrl, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, Scope, TokenResponse as _,
};
use pinakes_store::Tenant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::accounts::{Accounts, Login};
use crate::error::{Result, failed};
use crate::jwt::{self, Verified};

pub use self::settings::{Frontend, Settings};

/// Timeout of one request to the provider, in seconds.
const TIMEOUT_S: u64 = 10;
/// How long the provider's metadata, including its keys, is cached, in milliseconds.
const METADATA_MS: i64 = 60_000;
/// How long a user may take to log in at the provider, in seconds.
const LOGIN_S: i64 = 600;
/// Maximum size of an answer of the provider, in bytes.
const ANSWER_BYTES: usize = 1 << 20;
/// Maximum size of an ID token that a client sends, in bytes.
const TOKEN_BYTES: usize = 64 << 10;
/// The purpose for which the key of the cookie is derived.
const PURPOSE: &str = "oidc-login";
/// Signatures with keys that the provider publishes; none that are made with the client's secret.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 8] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// What the browser keeps during a login.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    state: String,
    nonce: String,
    verifier: String,
    client: String,
    return_url: String,
    callback_url: String,
}

/// The first half of a login.
#[derive(Debug)]
pub struct Departure {
    /// Where the browser is redirected.
    pub url: String,
    /// The cookie that it must send back; valid for ten minutes.
    pub cookie: String,
    /// The lifetime of the cookie, in seconds.
    pub cookie_life_s: i64,
}

/// The second half of a login.
#[derive(Debug)]
pub struct Arrival {
    /// The outcome.
    pub login: Login,
    /// Where the browser is redirected, without the token that is added.
    pub success_url: String,
    /// The page that the frontend shows then.
    pub return_url: String,
}

impl Accounts {
    /// Starts a login at the provider. `client` names a frontend, `return_url` is the page that it shows afterwards.
    ///
    /// Errors: no provider is configured; it cannot be reached.
    pub async fn depart(&self, tenant: &Tenant, client: &str, return_url: &str) -> Result<Departure> {
        let settings = &self.sources().oidc;
        let frontend = settings.frontend(client);
        let return_url = if is_own(return_url, &frontend) { return_url } else { &frontend.return_url };
        self.departure(tenant, client, return_url, &settings.callback_url).await
    }

    /// Starts a login for pages of this server. The browser comes back to them at `callback_url`, and continues at
    /// their path `return_url`.
    ///
    /// Errors: as for [`Accounts::depart`].
    pub async fn depart_from_pages(
        &self,
        tenant: &Tenant,
        callback_url: &str,
        return_url: &str,
    ) -> Result<Departure> {
        self.departure(tenant, "", return_url, callback_url).await
    }

    async fn departure(
        &self,
        tenant: &Tenant,
        client: &str,
        return_url: &str,
        callback_url: &str,
    ) -> Result<Departure> {
        let settings = &self.sources().oidc;
        let metadata = self.metadata().await?;
        let random = || URL_SAFE_NO_PAD.encode(self.entropy().bytes::<32>());
        let (state, nonce, verifier) = (random(), random(), random());
        let begun = Begun {
            state: state.clone(),
            nonce: nonce.clone(),
            verifier: verifier.clone(),
            client: client.to_owned(),
            return_url: return_url.to_owned(),
            callback_url: callback_url.to_owned(),
        };
        let invalid = |error: openidconnect::url::ParseError| failed("callback_url", error);
        let client =
            CoreClient::from_provider_metadata((*metadata).clone(), client_id(settings), secret(settings))
                .set_redirect_uri(RedirectUrl::new(callback_url.to_owned()).map_err(invalid)?);
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let scopes = settings.scope.split_whitespace().filter(|it| *it != "openid");
        let (url, ..) = client
            .authorize_url(flow, || CsrfToken::new(state), || Nonce::new(nonce))
            .add_scopes(scopes.map(|it| Scope::new(it.to_owned())))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&PkceCodeVerifier::new(
                verifier,
            )))
            .url();
        let mut claims = Map::new();
        claims.insert("begun".to_owned(), json!(begun));
        claims.insert("exp".to_owned(), json!(self.clock().now_s().saturating_add(LOGIN_S)));
        let cookie = jwt::sign(&self.derived(tenant.name(), PURPOSE), &claims);
        Ok(Departure { url: url.into(), cookie, cookie_life_s: LOGIN_S })
    }

    /// Finishes a login: `code` and `state` come from the provider, `cookie` is that of [`Departure`].
    ///
    /// Errors: as for [`Accounts::depart`]. A login that was not started in this browser, or has expired, is refused.
    pub async fn arrive_from_provider(
        &self,
        tenant: &Tenant,
        cookie: &str,
        state: &str,
        code: &str,
    ) -> Result<Arrival> {
        let settings = &self.sources().oidc;
        let Some(begun) = self.begun(tenant, cookie).filter(|it| is_same(&it.state, state)) else {
            let frontend = settings.frontend("");
            let (success_url, return_url) = (frontend.success_url, frontend.return_url);
            return Ok(Arrival { login: Login::Refused, success_url, return_url });
        };
        let metadata = self.metadata().await?;
        let invalid = |error: openidconnect::url::ParseError| failed("callback_url", error);
        let client =
            CoreClient::from_provider_metadata((*metadata).clone(), client_id(settings), secret(settings))
                .set_redirect_uri(RedirectUrl::new(begun.callback_url).map_err(invalid)?);
        let request = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .map_err(|_| failed(&settings.issuer, "it has no token endpoint"))?
            .set_pkce_verifier(PkceCodeVerifier::new(begun.verifier));
        let frontend = settings.frontend(&begun.client);
        let (success_url, return_url) = (frontend.success_url, begun.return_url);
        let answered = request.request_async(&ask).await;
        let tokens = match answered {
            Ok(tokens) => tokens,
            // A code that is wrong or has already been used.
            Err(openidconnect::RequestTokenError::ServerResponse(_)) => {
                return Ok(Arrival { login: Login::Refused, success_url, return_url });
            }
            Err(_) => return Err(failed(&settings.issuer, "the code could not be exchanged")),
        };
        let token = tokens.id_token().ok_or_else(|| failed(&settings.issuer, "it gave no ID token"))?;
        let nonce = Nonce::new(begun.nonce);
        let verifier = verifier(settings.client_id.clone(), &metadata);
        if let Err(error) = token.claims(&verifier, &nonce) {
            tracing::warn!(%error, "the provider's ID token is refused");
            return Ok(Arrival { login: Login::Refused, success_url, return_url });
        }
        let mut claims = payload(&token.to_string())?;
        if let Some(endpoint) = metadata.userinfo_endpoint() {
            let more = user_info(settings, endpoint.as_str(), tokens.access_token()).await?;
            // Claims about another user are ignored.
            if more.get("sub") == claims.get("sub") {
                claims.extend(more);
            }
        }
        let login = self.arrive(tenant, settings.person(&claims)?).await?;
        Ok(Arrival { login, success_url, return_url })
    }

    /// Logs in with an ID token that a client got from the provider itself: for this server's client, or for one of the
    /// additional parties.
    ///
    /// Errors: as for [`Accounts::depart`]. An invalid token is refused.
    pub async fn log_in_with_id_token(&self, tenant: &Tenant, token: &str) -> Result<Login> {
        let settings = &self.sources().oidc;
        if !settings.is_configured() || TOKEN_BYTES < token.len() {
            return Ok(Login::Refused);
        }
        let Ok(parsed) = token.parse::<CoreIdToken>() else { return Ok(Login::Refused) };
        let metadata = self.metadata().await?;
        let parties = std::iter::once(&settings.client_id).chain(&settings.additional_parties);
        let any_nonce = |_: Option<&Nonce>| Ok(());
        let is_sound = parties
            .map(|it| verifier(it.clone(), &metadata))
            .any(|verifier| parsed.claims(&verifier, any_nonce).is_ok());
        if !is_sound {
            return Ok(Login::Refused);
        }
        self.arrive(tenant, settings.person(&payload(token)?)?).await
    }

    fn begun(&self, tenant: &Tenant, cookie: &str) -> Option<Begun> {
        let key = self.derived(tenant.name(), PURPOSE);
        let Verified::Valid(claims) = jwt::verify(&key, cookie, self.clock().now_s()) else { return None };
        serde_json::from_value(claims.get("begun")?.clone()).ok()
    }

    /// Returns the provider's metadata, which is requested again once a minute.
    async fn metadata(&self) -> Result<Arc<CoreProviderMetadata>> {
        let settings = &self.sources().oidc;
        if !settings.is_configured() {
            return Err(failed("accounts.oidc", "no issuer is configured"));
        }
        let (mut known, now_ms) = (self.provider().0.lock().await, self.clock().now_ms());
        if let Some((metadata, since_ms)) = known.as_ref()
            && now_ms < since_ms.saturating_add(METADATA_MS)
        {
            return Ok(Arc::clone(metadata));
        }
        let issuer =
            IssuerUrl::new(settings.issuer.clone()).map_err(|error| failed("accounts.oidc.issuer", error))?;
        let asked = CoreProviderMetadata::discover_async(issuer, &ask).await;
        let metadata = asked.map_err(|error| failed(&settings.issuer, error)).map(Arc::new)?;
        *known = Some((Arc::clone(&metadata), now_ms));
        Ok(metadata)
    }
}

fn client_id(settings: &Settings) -> ClientId {
    ClientId::new(settings.client_id.clone())
}

fn secret(settings: &Settings) -> Option<ClientSecret> {
    let secret = settings.client_secret.reveal();
    (!secret.is_empty()).then(|| ClientSecret::new(secret.to_owned()))
}

/// Creates the verifier of tokens with the provider's published keys.
fn verifier(client_id: String, metadata: &CoreProviderMetadata) -> CoreIdTokenVerifier<'static> {
    let (issuer, keys) = (metadata.issuer().clone(), metadata.jwks().clone());
    CoreIdTokenVerifier::new_public_client(ClientId::new(client_id), issuer, keys)
        .set_allowed_algs(ALGORITHMS)
}

/// Returns the claims of a token whose signature has been verified.
fn payload(token: &str) -> Result<Map<String, Value>> {
    let bytes = token.split('.').nth(1).and_then(|it| URL_SAFE_NO_PAD.decode(it).ok());
    let claims = bytes.and_then(|it| serde_json::from_slice(&it).ok());
    claims.ok_or_else(|| failed("accounts.oidc", "the ID token holds no claims"))
}

async fn user_info(settings: &Settings, url: &str, token: &AccessToken) -> Result<Map<String, Value>> {
    let request = http::Request::get(url)
        .header(http::header::AUTHORIZATION, format!("Bearer {}", token.secret()))
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(|_| failed(&settings.issuer, "its userinfo endpoint is no URL"))?;
    let answer = ask(request).await.map_err(|error| failed(&settings.issuer, error))?;
    if !answer.status().is_success() {
        return Err(failed(&settings.issuer, format!("userinfo answered {}", answer.status())));
    }
    serde_json::from_slice(answer.body())
        .map_err(|_| failed(&settings.issuer, "its userinfo is no JSON object"))
}

/// A failed request to the provider.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("it cannot be asked: {0}")]
    Unasked(&'static str),
    #[error("its answer has more than {ANSWER_BYTES} bytes")]
    Long,
}

/// Sends one request without following redirects.
async fn ask(request: HttpRequest) -> std::result::Result<HttpResponse, AskError> {
    pinakes_tls::provider();
    let unasked = |error: reqwest::Error| {
        AskError::Unasked(if error.is_timeout() {
            "the time for it is over"
        } else if error.is_connect() {
            "no connection"
        } else {
            "the exchange failed"
        })
    };
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(TIMEOUT_S))
        .build()
        .map_err(unasked)?;
    let request = reqwest::Request::try_from(request).map_err(unasked)?;
    let mut answer = client.execute(request).await.map_err(unasked)?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(unasked)? {
        if ANSWER_BYTES < body.len() + piece.len() {
            return Err(AskError::Long);
        }
        body.extend_from_slice(&piece);
    }
    let mut shown = HttpResponse::new(body);
    (*shown.status_mut(), *shown.headers_mut()) = (status, headers);
    Ok(shown)
}

/// Says whether a frontend may redirect to this URL of its own choice: a path, or a URL that begins like its own ones.
fn is_own(url: &str, frontend: &Frontend) -> bool {
    // Browsers remove tabs and line ends from URLs before they parse them, and treat a backslash as a slash.
    let is_plain = !url.contains(|it: char| it == '\\' || it.is_control());
    let is_path = url.starts_with('/') && !url.starts_with("//") && is_plain;
    let origin = |it: &str| it.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    let is_of = |own: &String| !own.is_empty() && origin(own) == origin(url);
    is_path || is_plain && (is_of(&frontend.success_url) || is_of(&frontend.return_url))
}

/// Compares two texts in constant time.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        let frontend = Frontend { success_url: "https://a.org/login".into(), return_url: String::new() };
        for (url, expected) in [
            ("/datasets", true),
            ("https://a.org/x", true),
            ("//evil.org", false),
            ("/\\evil.org", false),
            ("https://a.org.evil.org/", false),
            ("https://evil.org/", false),
            ("javascript:alert(1)", false),
            ("", false),
        ] {
            assert_eq!(is_own(url, &frontend), expected, "{url}");
        }
    }
}
