//! Initialisers of module-scope variables.

use crate::{
    Operand, PtxError, Relocation, Type,
    directives::{ModuleName, Parser},
    lexer::Token,
    literal,
};

/// The bytes of an initialiser, and the addresses in it.
#[derive(Debug, Default)]
pub(crate) struct Initializer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) relocations: Vec<Relocation>,
}

/// Reads what follows the `=`: one value, or (nested) braces of values.
pub(crate) fn read(parser: &mut Parser<'_>, ty: Type) -> Result<Initializer, PtxError> {
    let mut init = Initializer::default();
    let mut depth = 0u32;
    loop {
        if parser.lexer.eat('{')? {
            depth += 1;
            continue;
        }
        if !(depth > 0 && parser.lexer.peek() == Token::Punct('}')) {
            value(parser, ty, &mut init)?;
        }
        while depth > 0 && parser.lexer.eat('}')? {
            depth -= 1;
        }
        if depth == 0 {
            return Ok(init);
        }
        parser.lexer.expect(',')?;
    }
}

fn value(parser: &mut Parser<'_>, ty: Type, init: &mut Initializer) -> Result<(), PtxError> {
    let width = ty.bytes() as usize;
    let negative = parser.lexer.eat('-')?;
    let error = parser.lexer.error(format!(
        "{} is not supported as an initial value of type `.{}`",
        parser.lexer.peek().describe(),
        ty.name()
    ));
    let value = match parser.lexer.peek() {
        Token::Number(text) => literal::operand(text, negative).ok_or_else(|| error.clone())?,
        Token::Word(_) if !negative && width == 8 => return address(parser, init),
        _ => return Err(error),
    };
    parser.lexer.next()?;
    let bits = match (value, ty) {
        (Operand::F32(bits), Type::F32 | Type::B32) => u64::from(bits),
        (Operand::F64(bits), Type::F64 | Type::B64) => bits,
        (Operand::F64(bits), Type::F32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (Operand::Integer(value), ty) if !ty.is_float() && width <= 8 => value,
        _ => return Err(error),
    };
    init.bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
    Ok(())
}

/// `name`, `generic(name)`, each with an optional `+ n` or `- n`.
fn address(parser: &mut Parser<'_>, init: &mut Initializer) -> Result<(), PtxError> {
    let line = parser.lexer.line();
    let mut name = parser.lexer.word("a name")?;
    let wrapped = name == "generic";
    if wrapped {
        parser.lexer.expect('(')?;
        name = parser.lexer.word("a name")?;
        parser.lexer.expect(')')?;
    }
    let addend = parser.offset()?;
    let Some(&ModuleName::Global(target)) = parser.names.get(name) else {
        return Err(PtxError {
            line,
            message: format!("`{name}` is no variable whose address is constant"),
        });
    };
    init.relocations.push(Relocation {
        offset: init.bytes.len() as u64,
        target,
        addend,
    });
    init.bytes.extend_from_slice(&[0; 8]);
    Ok(())
}

impl Parser<'_> {
    /// `+ n`, `- n`, `+ -n` or nothing.
    pub(crate) fn offset(&mut self) -> Result<i64, PtxError> {
        let mut sign = 1i64;
        if self.lexer.eat('-')? {
            sign = -1;
        } else if self.lexer.eat('+')? {
            if self.lexer.eat('-')? {
                sign = -1;
            }
        } else {
            return Ok(0);
        }
        Ok(sign.wrapping_mul(self.lexer.number()? as i64))
    }
}
