//! How large a predicate may be, so that no text, however hostile, exhausts the stack, the memory or the time.
//!
//! The parser bounds its own recursion only where it reads operators. Types and a few other constructs recurse without
//! a bound, and at what may be a call it reads on two ways, which doubles its time with each level. So what nests is
//! counted before the parser sees it.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};
use crate::plan::value::cut;

/// Bytes of a predicate's text.
pub(super) const TEXT: usize = 256 * 1024;
/// Words and signs of a predicate, lists of literals apart. Bounds the depth of the syntax tree, which chains of
/// operators deepen without the parser recursing.
pub(super) const TOKENS: usize = 3000;
/// Parentheses and prefix operators inside each other.
pub(super) const NESTING: usize = 48;
/// Calls inside each other, IN (…) among them.
const CALLS: usize = 6;
/// Words and signs in all that begin what no predicate takes and nest. Some are let pass, for the translator to say better
/// what is wrong with them.
const FOREIGN: usize = 3;
/// Operators inside each other, once read; chains of AND and of OR count as one.
pub(super) const DEPTH: usize = 64;
/// Expressions in all, literals apart. BETWEEN and some IN repeat an operand, which doubles with each level of nesting.
pub(super) const EXPRESSIONS: usize = 50_000;
/// Operations that make texts: ||, upper, lower, trim, CAST to STRING.
pub(super) const TEXTS: usize = 32;
/// Characters of a pattern of LIKE, and the wildcards % in it: its time is the text's length times the pattern's.
const PATTERN: usize = 1000;
const WILDCARDS: usize = 16;
/// Bytes of texts that are made at once. Far below what offsets of 32 bits reach.
const MADE: usize = 128 << 20;

/// # Errors
/// `Invalid` for text that is too long.
pub(super) fn check_text(text: &str) -> Result<()> {
    if text.len() <= TEXT {
        return Ok(());
    }
    Err(Error::invalid(format!("the expression is {} bytes long; at most {TEXT} are taken", text.len())))
}

/// # Errors
/// `Invalid` for too many words, and for calls and what no predicate takes too often inside each other.
pub(super) fn check_tokens(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    if tokens.iter().filter(|token| deepens(&token.token)).count() > TOKENS {
        return Err(Error::invalid(format!("the expression '{}' has more than {TOKENS} words", cut(text)))
            .hint("use IN (…) for a long list of values"));
    }
    // For each open parenthesis, whether it is that of a call.
    let mut open: Vec<bool> = Vec::new();
    let (mut calls, mut foreign) = (0, 0);
    let mut before = &Token::EOF;
    for token in tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))) {
        match token {
            Token::LParen => {
                let is_call = is_call(before);
                calls += usize::from(is_call);
                open.push(is_call);
            }
            Token::RParen => calls -= usize::from(open.pop() == Some(true)),
            _ => foreign += usize::from(is_foreign(token)),
        }
        if calls > CALLS {
            return Err(Error::invalid(format!(
                "the expression '{}' has calls or IN (…) more than {CALLS} deep inside each other",
                cut(text)
            )));
        }
        if foreign > FOREIGN {
            return Err(Error::invalid(format!(
                "the expression '{}' is made of what no expression takes: {token}",
                cut(text)
            ))
            .hint(format!("if {token} is the name of a column, write it in backticks")));
        }
        before = token;
    }
    Ok(())
}

/// The error for parentheses and operators too deep inside each other.
pub(super) fn too_deep(text: &str) -> Error {
    Error::invalid(format!(
        "the expression '{}' has parentheses or operators more than {NESTING} deep inside each other",
        cut(text)
    ))
}

/// # Errors
/// `Invalid` for a pattern of LIKE that is too long, or has too many wildcards.
pub(super) fn check_pattern(pattern: &str) -> Result<()> {
    if pattern.chars().count() > PATTERN || pattern.matches('%').count() > WILDCARDS {
        return Err(Error::invalid(format!(
            "the pattern '{}' has more than {PATTERN} characters or {WILDCARDS} wildcards %",
            cut(pattern)
        )));
    }
    Ok(())
}

/// Whether `operations` that make texts may be done at once for rows that have these bytes of text between them,
/// literals included. A letter may become three.
pub(super) fn may_make(operations: usize, bytes: usize) -> bool {
    bytes.saturating_mul(3).saturating_mul(operations + 1) <= MADE
}

/// Whether a token can make the syntax tree deeper.
fn deepens(token: &Token) -> bool {
    !matches!(token, Token::Whitespace(_) | Token::Comma | Token::Number(..) | Token::SingleQuotedString(_))
}

/// Whether a parenthesis after this token is that of a call, or of what the parser may take for one: IN too.
fn is_call(before: &Token) -> bool {
    match before {
        Token::Word(word) => {
            !matches!(word.keyword, Keyword::AND | Keyword::OR | Keyword::NOT | Keyword::BETWEEN | Keyword::LIKE)
        }
        _ => false,
    }
}

/// Whether a token begins what no predicate takes and nests.
fn is_foreign(token: &Token) -> bool {
    match token {
        Token::LBracket | Token::LBrace | Token::Arrow | Token::Colon | Token::Period => true,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::ARRAY
                | Keyword::CASE
                | Keyword::EXISTS
                | Keyword::INTERVAL
                | Keyword::LAMBDA
                | Keyword::MAP
                | Keyword::NESTED
                | Keyword::PRIOR
                | Keyword::SELECT
                | Keyword::STRUCT
        ),
        _ => false,
    }
}
