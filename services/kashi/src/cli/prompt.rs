//! Asking a person: a line, and a secret that is not shown.
//!
//! Invariants: a secret is never an argument that other processes could read, unless somebody insists; a terminal is
//! left as it was found, also after Ctrl-C, which is read here as a key.

use crate::cli::fault::Fault;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::io::{BufRead, IsTerminal, Stdin, Write, stderr, stdin};

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;

/// Whether there is a person to ask.
pub(crate) fn is_possible() -> bool {
    stdin().is_terminal()
}

/// The next line of standard input, which has to be there.
pub(crate) fn line(what: &str) -> Result<String, Fault> {
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    let line = line.trim_end_matches(['\n', '\r']).to_owned();
    if line.is_empty() { Err(Fault::Usage(format!("standard input has no {what}"))) } else { Ok(line) }
}

/// What a person answers.
pub(crate) fn ask(question: &str) -> Result<String, Fault> {
    say(question)?;
    line("answer")
}

/// What a person answers, without showing it.
pub(crate) fn ask_secret(question: &str) -> Result<String, Fault> {
    say(question)?;
    let input = stdin();
    let hidden = Hidden::begin(&input)?;
    let answer = keys(input.lock());
    drop(hidden);
    say("\n")?;
    answer
}

fn say(text: &str) -> Result<(), Fault> {
    let mut out = stderr();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// A terminal that shows nothing and gives every key, until this is dropped.
struct Hidden<'a> {
    input: &'a Stdin,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn begin(input: &'a Stdin) -> Result<Self, Fault> {
        let before = tcgetattr(input).map_err(std::io::Error::from)?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(input, OptionalActions::Flush, &hidden).map_err(std::io::Error::from)?;
        Ok(Self { input, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no mending.
        let _ = tcsetattr(self.input, OptionalActions::Flush, &self.before);
    }
}

/// The keys up to the end of the line.
fn keys(input: impl BufRead) -> Result<String, Fault> {
    let mut typed = vec![];
    for key in input.bytes() {
        match key? {
            b'\n' | b'\r' => break,
            CTRL_C => return Err(Fault::Interrupted),
            CTRL_D => break,
            BACKSPACE | DELETE => rub_out(&mut typed),
            key => typed.push(key),
        }
    }
    let bad = |_| Fault::Usage("what was typed is not UTF-8".to_owned());
    let typed = String::from_utf8(typed).map_err(bad)?;
    if typed.is_empty() { Err(Fault::Usage("nothing was typed".to_owned())) } else { Ok(typed) }
}

/// Takes the last character away, however many bytes it has.
fn rub_out(typed: &mut Vec<u8>) {
    while let Some(byte) = typed.pop() {
        let goes_on = byte & 0b1100_0000 == 0b1000_0000;
        if !goes_on {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_a_line() {
        assert_eq!(keys(&b"secret\nmore"[..]).unwrap(), "secret");
        assert_eq!(keys(&b"sx\x7fecrex\x08t\r"[..]).unwrap(), "secret");
        assert_eq!(keys("密码码\u{7f}\n".as_bytes()).unwrap(), "密码");
        assert_eq!(keys(&b"\x7fa\x04"[..]).unwrap(), "a");
    }

    #[test]
    fn ctrl_c_ends_and_nothing_is_no_answer() {
        assert_eq!(keys(&b"abc\x03"[..]).unwrap_err().exit(), 130);
        assert_eq!(keys(&b"\n"[..]).unwrap_err().exit(), 2);
        assert_eq!(keys(&b"\xff\n"[..]).unwrap_err().exit(), 2);
    }
}
