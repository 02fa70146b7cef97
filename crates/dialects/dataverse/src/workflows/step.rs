//! The steps of workflows: their types, the requests they send, and how responses are interpreted.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::remote::{METHODS, Sending};

/// The provider of the supported steps.
const PROVIDER: &str = ":internal";
/// Maximum length of a parameter, in bytes.
const PARAMETER_BYTES: usize = 16 << 10;
/// Maximum size of the compiled pattern for an expected response, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// Type of the step.
    pub step_type: StepType,
    /// Parameters by name, as given.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

/// Type of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StepType {
    /// Writes its parameters to the server's log.
    #[serde(rename = "log")]
    Log,
    /// Waits for a message; `fail` ends the workflow.
    #[serde(rename = "pause")]
    Pause,
    /// Waits for an object with `Status`, `Reason` and `Message`.
    #[serde(rename = "pause/message")]
    PauseForMessage,
    /// Sends a request and waits for a response that matches the pattern `expectedResponse`.
    #[serde(rename = "http/sr")]
    SendAndReceive,
}

impl StepType {
    const ALL: [Self; 4] = [Self::Log, Self::Pause, Self::PauseForMessage, Self::SendAndReceive];

    fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Pause => "pause",
            Self::PauseForMessage => "pause/message",
            Self::SendAndReceive => "http/sr",
        }
    }
}

/// Values for `${name}` in what a step sends.
pub(super) type Variables = Vec<(&'static str, String)>;

impl Step {
    /// Parses a step.
    ///
    /// Errors: what is missing or not supported.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let text =
            |name: &str| json[name].as_str().ok_or_else(|| format!("a step has no text {name:?}: {json}"));
        let (provider, name) = (text("provider")?, text("stepType")?);
        let known = StepType::ALL.into_iter().find(|it| provider == PROVIDER && it.name() == name);
        let step_type = known.ok_or_else(|| {
            let names = StepType::ALL.map(StepType::name).join(", ");
            format!(
                "there is no step {name:?} of the provider {provider:?}; those of {PROVIDER:?} are {names}"
            )
        })?;
        let empty = Map::new();
        let mut parameters = BTreeMap::new();
        for (name, value) in json["parameters"].as_object().unwrap_or(&empty) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if PARAMETER_BYTES < value.len() {
                return Err(format!(
                    "the parameter {name:?} has {} bytes, {PARAMETER_BYTES} are taken",
                    value.len()
                ));
            }
            parameters.insert(name.clone(), value);
        }
        let step = Self { step_type, parameters };
        step.check()?;
        Ok(step)
    }

    fn check(&self) -> Result<(), String> {
        if self.step_type != StepType::SendAndReceive {
            return Ok(());
        }
        self.pattern()?;
        let sending =
            self.sending(&Vec::new(), false).ok_or("a step \"http/sr\" has no parameter \"url\"")?;
        let undoing = self.sending(&Vec::new(), true);
        for it in std::iter::once(&sending).chain(&undoing) {
            if !METHODS.contains(&it.method.as_str()) {
                return Err(format!("the method {:?} is none of {}", it.method, METHODS.join(", ")));
            }
            let is_web = Url::parse(&it.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_web {
                return Err(format!("{:?} is no URL that begins with http:// or https://", it.url));
            }
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "stepType": self.step_type.name(),
            "provider": PROVIDER,
            "parameters": self.parameters,
            "requiredSettings": {},
        })
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// Returns the pattern that the whole response must match.
    fn pattern(&self) -> Result<Regex, String> {
        let pattern = self.parameter("expectedResponse").unwrap_or(".*");
        RegexBuilder::new(&format!("^(?:{pattern})$"))
            .dot_matches_new_line(true)
            .size_limit(PATTERN_BYTES)
            .build()
            .map_err(|error| format!("expectedResponse {pattern:?} is no pattern: {error}"))
    }

    /// Returns the request that the step sends or, with `undoes`, the one that rolls it back.
    pub(super) fn sending(&self, variables: &Variables, undoes: bool) -> Option<Sending> {
        if self.step_type != StepType::SendAndReceive {
            return None;
        }
        let (url, method) = if undoes { ("rollbackUrl", "rollbackMethod") } else { ("url", "method") };
        let url = filled(self.parameter(url)?, variables, encoded);
        let method = self.parameter(method).unwrap_or("GET").to_ascii_uppercase();
        let body = self.parameter("body").map(|it| filled(it, variables, str::to_owned)).unwrap_or_default();
        let content_type = self.parameter("contentType").unwrap_or("text/plain").to_owned();
        Some(Sending { url, method, content_type, body })
    }

    /// Evaluates the message for which a step waited.
    ///
    /// Errors: why the workflow ends.
    pub(super) fn resumed(&self, word: &str) -> Result<(), String> {
        let word = word.trim();
        match self.step_type {
            StepType::Log => Ok(()),
            StepType::Pause if word.eq_ignore_ascii_case("fail") => Err("Simulated fail".to_owned()),
            StepType::Pause => Ok(()),
            StepType::PauseForMessage => match serde_json::from_str::<Value>(word) {
                Ok(json) if json["Status"] == "Success" => Ok(()),
                Ok(json) => Err(["Reason", "Message"]
                    .iter()
                    .find_map(|it| json[*it].as_str())
                    .unwrap_or("The answer has no Status \"Success\".")
                    .to_owned()),
                Err(error) => Err(format!("The answer is no JSON: {error}")),
            },
            StepType::SendAndReceive => match self.pattern()?.is_match(word) {
                true => Ok(()),
                false => Err(format!("Message from server: {word}")),
            },
        }
    }
}

/// Replaces the names of variables in a text by their values.
fn filled(text: &str, variables: &Variables, shown: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        out.push_str(before);
        let found = from.split_once('}').and_then(|(name, after)| {
            let value = variables.iter().find(|it| it.0 == name).map(|it| &it.1)?;
            Some((value, after))
        });
        match found {
            Some((value, after)) => {
                out.push_str(&shown(value));
                rest = after;
            }
            None => {
                out.push_str("${");
                rest = from;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Encodes a value for a URL, except the slashes and colons of identifiers.
fn encoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step_type: &str, parameters: Value) -> Result<Step, String> {
        Step::read(&json!({"provider": ":internal", "stepType": step_type, "parameters": parameters}))
    }

    #[test]
    fn steps_that_cannot_be_taken_are_refused() {
        for (step_type, parameters, expected) in [
            ("archiver", json!({}), "there is no step \"archiver\""),
            ("http/sr", json!({}), "no parameter \"url\""),
            ("http/sr", json!({"url": "file:///etc/passwd"}), "no URL that begins with http"),
            ("http/sr", json!({"url": "http://x.example", "method": "TRACE"}), "the method \"TRACE\""),
            ("http/sr", json!({"url": "http://x.example", "expectedResponse": "("}), "is no pattern"),
            ("http/sr", json!({"url": "http://x.example", "rollbackUrl": "x"}), "\"x\" is no URL"),
        ] {
            let refused = step(step_type, parameters.clone()).unwrap_err();
            assert!(refused.contains(expected), "{step_type} {parameters}: {refused}");
        }
    }

    #[test]
    fn requests_name_the_dataset() {
        let parameters = json!({
            "url": "http://x.example/${invocationId}?t=${dataset.displayName}&n=${nothing}",
            "method": "put", "body": "${dataset.displayName}!", "rollbackUrl": "http://x.example/${invocationId}",
            "rollbackMethod": "DELETE",
        });
        let step = step("http/sr", parameters).unwrap();
        let variables = vec![("invocationId", "i1".to_owned()), ("dataset.displayName", "A & B".to_owned())];
        let sending = step.sending(&variables, false).unwrap();
        assert_eq!(sending.url, "http://x.example/i1?t=A%20%26%20B&n=${nothing}");
        assert_eq!((sending.method.as_str(), sending.body.as_str()), ("PUT", "A & B!"));
        let undoing = step.sending(&variables, true).unwrap();
        assert_eq!((undoing.method.as_str(), undoing.url.as_str()), ("DELETE", "http://x.example/i1"));
    }

    #[test]
    fn words_let_a_workflow_go_on_or_end() {
        for (step_type, parameters, word, goes_on) in [
            ("pause", json!({}), "", true),
            ("pause", json!({}), "fail\n", false),
            ("pause/message", json!({}), "{\"Status\": \"Success\"}", true),
            ("pause/message", json!({}), "{\"Status\": \"Failure\", \"Reason\": \"no\"}", false),
            ("pause/message", json!({}), "what", false),
            ("http/sr", json!({"url": "http://x.example", "expectedResponse": "OK.*"}), "OK done", true),
            ("http/sr", json!({"url": "http://x.example", "expectedResponse": "OK.*"}), "not OK", false),
        ] {
            let step = step(step_type, parameters).unwrap();
            assert_eq!(step.resumed(word).is_ok(), goes_on, "{step_type} {word}");
        }
    }
}
