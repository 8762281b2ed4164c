//! The head of a kernel: name, parameters, and limits.

use crate::{Entry, Param, PtxError, body, directives::Parser, lexer::Token};

/// Reads a kernel, `.entry` already taken, and adds it to the module.
pub(crate) fn read(parser: &mut Parser<'_>, line: u32) -> Result<(), PtxError> {
    let name = parser.lexer.word("a kernel's name")?.to_owned();
    if parser.module.entry(&name).is_some() {
        return Err(PtxError {
            line,
            message: format!("kernel `{name}` is declared twice"),
        });
    }
    let params = params(parser)?;
    let param_bytes = params.last().map_or(0, |param| param.offset + param.size);
    let mut entry = Entry {
        name,
        params,
        param_bytes,
        max_threads: None,
        required_threads: None,
        min_ctas_per_sm: None,
        max_registers: None,
        registers: Vec::new(),
        shared: Vec::new(),
        dynamic_shared_align: None,
        local: Vec::new(),
        body: Vec::new(),
        line,
    };
    while let Token::Dotted(word) = parser.lexer.peek() {
        let line = parser.lexer.line();
        parser.lexer.next()?;
        match word {
            "maxntid" => entry.max_threads = Some(dimensions(parser)?),
            "reqntid" => entry.required_threads = Some(dimensions(parser)?),
            "minnctapersm" => entry.min_ctas_per_sm = Some(parser.lexer.number32()?),
            "maxnreg" => entry.max_registers = Some(parser.lexer.number32()?),
            "pragma" => parser.pragma()?,
            other => {
                return Err(PtxError {
                    line,
                    message: format!("directive `.{other}` is not supported on a kernel"),
                });
            }
        }
    }
    let entry = body::read(parser, entry)?;
    parser.module.entries.push(entry);
    Ok(())
}

/// The most a parameter block can hold (32 764 bytes since sm_70).
const PARAM_LIMIT: u64 = 32_764;

fn params(parser: &mut Parser<'_>) -> Result<Vec<Param>, PtxError> {
    let mut params = Vec::new();
    let mut end = 0u64;
    if !parser.lexer.eat('(')? {
        return Ok(params);
    }
    while !parser.lexer.eat(')')? {
        if !params.is_empty() {
            parser.lexer.expect(',')?;
        }
        if parser.lexer.peek() != Token::Dotted("param") {
            let found = parser.lexer.peek().describe();
            return Err(parser
                .lexer
                .error(format!("expected `.param`, found {found}")));
        }
        parser.lexer.next()?;
        let declared = parser.declaration()?;
        let error = parser.lexer.error(format!(
            "parameter `{}` is unsized or too large",
            declared.name
        ));
        let size = declared.size.ok_or_else(|| error.clone())?;
        let offset = end.next_multiple_of(u64::from(declared.align));
        end = offset + size;
        if end > PARAM_LIMIT {
            return Err(error);
        }
        params.push(Param {
            name: declared.name.to_owned(),
            offset: offset as u32,
            size: size as u32,
            align: declared.align,
        });
    }
    Ok(params)
}

/// `x`, `x, y` or `x, y, z`; what is not given is 1.
fn dimensions(parser: &mut Parser<'_>) -> Result<[u32; 3], PtxError> {
    let mut dimensions = [1; 3];
    for (at, dimension) in dimensions.iter_mut().enumerate() {
        if at > 0 && !parser.lexer.eat(',')? {
            break;
        }
        *dimension = parser.lexer.number32()?;
    }
    Ok(dimensions)
}
