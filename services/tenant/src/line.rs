//! Texts of people that the domain keeps as they are: one line, with an end.
//!
//! Owns: the bound of such a text. Does not own: names and reasons that an aggregate checks itself.

use kit::Problem;

/// The most characters of a line.
pub(crate) const LENGTH_MAX: usize = 200;

/// The text, where it is one line of 1 to 200 characters without a space at its ends; 422 for this field otherwise.
pub(crate) fn line(pointer: &'static str, text: String) -> Result<String, Problem> {
    let length = text.chars().take(LENGTH_MAX + 1).count();
    if (1..=LENGTH_MAX).contains(&length) && text.trim() == text && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    let rule =
        format!("it has 1 to {LENGTH_MAX} characters, no control character and no space at its beginning or end");
    Err(Problem::invalid("request.bad_text", format!("`{}`: {rule}", &pointer[1..])).with_field(pointer, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_line_with_an_end() {
        assert_eq!(line("/reason", "上月欠费 paid".into()), Ok("上月欠费 paid".into()));
        assert!(line("/reason", "x".repeat(LENGTH_MAX)).is_ok());
        for bad in ["", " ", "a ", "a\nb", &"x".repeat(LENGTH_MAX + 1)] {
            assert_eq!(line("/reason", bad.into()).unwrap_err().code(), "request.bad_text", "{bad:?}");
        }
    }
}
