//! Exchanges: files of requests as clients send them, and of the answers they get.
//!
//! A file holds a sequence of requests, separated by empty lines; lines that start with `#` are comments. `{{…}}` stands
//! for a value of an earlier answer, counted from 1, or for another that the test knows. How a request is sent, and which
//! part of its answer is recorded, is the test's.

/// Returns the requests of a case, without comments.
pub fn requests(text: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    for line in text.lines().filter(|it| !it.starts_with('#')) {
        match (line.trim().is_empty(), list.last_mut()) {
            (true, _) => list.push(String::new()),
            (false, Some(request)) => {
                request.push_str(line);
                request.push('\n');
            }
            (false, None) => {}
        }
    }
    list.retain(|it| !it.is_empty());
    list
}

/// Replaces each `{{name}}`. `value` gets the text before it, and the name.
///
/// Errors: those of `value`; a `{{` without its end.
pub fn filled<E: From<String>>(
    request: &str,
    mut value: impl FnMut(&str, &str) -> Result<String, E>,
) -> Result<String, E> {
    let (mut filled, mut rest) = (String::new(), request);
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or_else(|| format!("an open {{{{ in {request}"))?;
        filled.push_str(before);
        let value = value(&filled, name)?;
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Returns the answer of a number, counted from 1.
///
/// Errors: the number is none, or there is no such answer yet.
pub fn numbered<'a, T>(answers: &'a [T], number: &str) -> Result<&'a T, String> {
    let index = number.parse::<usize>().map_err(|_| format!("{number} is no number of an answer"))?;
    let found = index.checked_sub(1).and_then(|it| answers.get(it));
    found.ok_or_else(|| format!("there is no answer {number}, of {} so far", answers.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_separated_by_empty_lines() {
        let text = "# About.\na GET /\n\n\nb POST /\n# Within.\n{\"a\": 1}\n  \nc GET /x";
        assert_eq!(requests(text), ["a GET /\n", "b POST /\n{\"a\": 1}\n", "c GET /x\n"]);
        assert!(requests("# Nothing.\n").is_empty());
    }

    #[test]
    fn values_of_answers_are_filled_in() {
        let answers = ["one", "two"];
        let fill = |text: &str| {
            filled::<String>(text, |before, name| {
                let answer = numbered(&answers, name)?;
                Ok(if before.contains(' ') { answer.to_uppercase() } else { (*answer).to_owned() })
            })
        };
        assert_eq!(fill("/{{1}}/{{2}} {{1}}").as_deref(), Ok("/one/two ONE"));
        assert_eq!(fill("{{0}}").unwrap_err(), "there is no answer 0, of 2 so far");
        assert_eq!(fill("{{x}}").unwrap_err(), "x is no number of an answer");
        assert_eq!(fill("{{1").unwrap_err(), "an open {{ in {{1");
    }
}
