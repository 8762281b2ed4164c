//! Whether an instruction has an accepted form, and what to say when it has not.

mod table;

use crate::{Modifier, Opcode, Operand, Register, RegisterId, Type};
use std::{collections::HashMap, sync::OnceLock};
use table::{FORMS, LISTS};

/// One line of the table.
#[derive(Debug)]
struct Form {
    groups: Vec<Group>,
    types: Vec<Vec<Type>>,
    operands: Vec<char>,
}

/// Modifiers of which an instruction has exactly one (or at most one).
#[derive(Debug)]
struct Group {
    optional: bool,
    words: Vec<Modifier>,
}

/// An instruction as it was read, before its form is known.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    /// Opcode and dotted words as the text has them.
    pub(crate) text: &'a str,
    pub(crate) opcode: Opcode,
    pub(crate) modifiers: &'a [Modifier],
    pub(crate) types: &'a [Type],
    pub(crate) operands: &'a [Operand],
    pub(crate) registers: &'a [Register],
}

/// Refuses an instruction that has no accepted form, saying what is wrong with it.
pub(crate) fn check(instruction: &Candidate<'_>) -> Result<(), String> {
    let refuse = |why: String| Err(format!("`{}`: {why}", instruction.text));
    let forms = forms()
        .get(&instruction.opcode)
        .map_or(&[][..], Vec::as_slice);
    let typed: Vec<&Form> = forms
        .iter()
        .filter(|form| form.takes_types(instruction.types))
        .collect();
    if typed.is_empty() {
        return refuse(match instruction.types {
            [] => "a type is missing".to_owned(),
            types => format!(
                "{} is not supported here",
                dotted(types.iter().map(|ty| ty.name()))
            ),
        });
    }
    let modified: Vec<&&Form> = typed
        .iter()
        .filter(|form| form.mismatch(instruction.modifiers).is_none())
        .collect();
    if modified.is_empty() {
        let nearest = typed
            .iter()
            .filter_map(|form| form.mismatch(instruction.modifiers))
            // A word too many weighs more than one that is missing: the writer meant the form that has them all.
            .min_by_key(|mismatch| 2 * mismatch.extra.len() + mismatch.missing.len());
        return refuse(
            nearest.map_or_else(String::new, |mismatch| mismatch.explain(instruction.types)),
        );
    }
    let mut why = String::new();
    for form in modified {
        match form.operand_mismatch(instruction) {
            None => return Ok(()),
            Some(mismatch) => why = mismatch,
        }
    }
    refuse(why)
}

fn dotted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("`.{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What keeps a list of modifiers from fitting a form.
struct Mismatch<'a> {
    extra: Vec<Modifier>,
    missing: Vec<&'a Group>,
}

impl Mismatch<'_> {
    fn explain(&self, types: &[Type]) -> String {
        if let Some(extra) = self.extra.first() {
            let with = match types {
                [] => "here".to_owned(),
                types => format!("with {}", dotted(types.iter().map(|ty| ty.name()))),
            };
            return format!("modifier `.{}` is not supported {with}", extra.name());
        }
        let choices = self.missing.first().map_or(&[][..], |group| &group.words);
        format!(
            "needs one of {}",
            dotted(choices.iter().map(|word| word.name()))
        )
    }
}

impl Form {
    fn takes_types(&self, types: &[Type]) -> bool {
        self.types.len() == types.len()
            && self
                .types
                .iter()
                .zip(types)
                .all(|(choices, ty)| choices.contains(ty))
    }

    fn mismatch(&self, modifiers: &[Modifier]) -> Option<Mismatch<'_>> {
        let mut met = vec![false; self.groups.len()];
        let mut extra = Vec::new();
        for &modifier in modifiers {
            let place = self
                .groups
                .iter()
                .position(|group| group.words.contains(&modifier));
            match place.filter(|&place| !met[place]) {
                Some(place) => met[place] = true,
                None => extra.push(modifier),
            }
        }
        let missing: Vec<_> = self
            .groups
            .iter()
            .zip(met)
            .filter(|(group, met)| !met && !group.optional)
            .map(|(group, _)| group)
            .collect();
        (!extra.is_empty() || !missing.is_empty()).then_some(Mismatch { extra, missing })
    }

    fn operand_mismatch(&self, instruction: &Candidate<'_>) -> Option<String> {
        let (wanted, given) = (self.operands.len(), instruction.operands.len());
        if wanted != given {
            return Some(format!("takes {wanted} operands, not {given}"));
        }
        let predicate = instruction.types.first() == Some(&Type::Pred);
        let at = self.operands.iter().zip(instruction.operands);
        at.enumerate().find_map(|(at, (&kind, operand))| {
            let fits = fits(kind, operand, predicate, instruction.registers);
            (!fits).then(|| format!("operand {} must be {}", at + 1, describe(kind, predicate)))
        })
    }
}

fn fits(kind: char, operand: &Operand, predicate: bool, registers: &[Register]) -> bool {
    let is_pred = |id: &RegisterId| {
        registers
            .get(id.0 as usize)
            .is_some_and(|r| r.ty == Type::Pred)
    };
    match (kind, operand) {
        ('d' | 'D' | 'P', Operand::Register(id)) => is_pred(id) == predicate,
        ('d' | 'D' | 'P' | 'p', Operand::Sink) => true,
        ('D', Operand::Vector(parts)) => parts
            .iter()
            .all(|part| fits('d', part, predicate, registers)),
        ('P', Operand::Pair(value, flag)) => {
            fits('d', value, predicate, registers) && fits('p', flag, false, registers)
        }
        ('p', Operand::Register(id)) => is_pred(id),
        ('p', Operand::Pair(yes, no)) => {
            fits('p', yes, false, registers) && fits('p', no, false, registers)
        }
        ('q' | 'Q', Operand::Register(id) | Operand::Not(id)) => is_pred(id),
        ('Q', Operand::Integer(_)) => true,
        ('a' | 'A', Operand::Register(id)) => !is_pred(id),
        ('a' | 'A', Operand::Integer(_) | Operand::F32(_) | Operand::F64(_)) => true,
        ('a' | 'A', Operand::Special(_) | Operand::Symbol(..)) => true,
        ('A', Operand::Vector(parts)) => parts
            .iter()
            .all(|part| fits('a', part, predicate, registers)),
        ('i', Operand::Integer(_)) => true,
        ('m', Operand::Address(..)) => true,
        ('l', Operand::Label(_)) => true,
        _ => false,
    }
}

fn describe(kind: char, predicate: bool) -> &'static str {
    match kind {
        'd' if predicate => "a predicate register",
        'd' => "a destination register",
        'D' => "a destination register or a vector of them",
        'P' => "a destination register, alone or with `|` and a predicate",
        'p' => "a predicate register or two with `|`",
        'q' | 'Q' => "a predicate",
        'a' => "a register or a constant",
        'A' => "a register, a constant or a vector of them",
        'i' => "an integer constant",
        'm' => "an address in brackets",
        _ => "a label",
    }
}

fn forms() -> &'static HashMap<Opcode, Vec<Form>> {
    static PARSED: OnceLock<HashMap<Opcode, Vec<Form>>> = OnceLock::new();
    PARSED.get_or_init(|| {
        let mut forms: HashMap<Opcode, Vec<Form>> = HashMap::new();
        for line in FORMS {
            let (opcode, form) = parse(line).unwrap_or_else(|| panic!("table of forms: `{line}`"));
            forms.entry(opcode).or_default().push(form);
        }
        forms
    })
}

/// Replaces `$name` by the list of that name.
fn expand(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut parts = text.split('$');
    out.push_str(parts.next()?);
    for part in parts {
        let len = part
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(part.len());
        let (name, rest) = part.split_at(len);
        out.push_str(LISTS.iter().find(|list| list.0 == name)?.1);
        out.push_str(rest);
    }
    Some(out)
}

fn parse(line: &str) -> Option<(Opcode, Form)> {
    let (head, operands) = line.split_once(':')?;
    let mut form = Form {
        groups: Vec::new(),
        types: Vec::new(),
        operands: Vec::new(),
    };
    let mut words = head.split_whitespace();
    let opcode = Opcode::from_name(words.next()?)?;
    for word in words {
        let word = expand(word)?;
        if let Some(types) = word.strip_prefix('<') {
            let types = types.strip_suffix('>')?.split(',');
            form.types
                .push(types.map(Type::from_name).collect::<Option<_>>()?);
            continue;
        }
        let (optional, choices) = match word.strip_prefix('?') {
            Some(choices) => (true, choices),
            None => (false, &*word),
        };
        let words = choices
            .split('|')
            .map(Modifier::from_name)
            .collect::<Option<_>>()?;
        form.groups.push(Group { optional, words });
    }
    form.operands = operands
        .split_whitespace()
        .filter_map(|kind| kind.chars().next())
        .collect();
    Some((opcode, form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_readable() {
        assert_eq!(forms().values().map(Vec::len).sum::<usize>(), FORMS.len());
    }

    #[test]
    fn lists_expand_in_place() {
        assert_eq!(expand("?$scope").as_deref(), Some("?cta|cluster|gpu|sys"));
        assert_eq!(
            expand("<u8,$bits,f32>").as_deref(),
            Some("<u8,b16,b32,b64,f32>")
        );
        assert_eq!(expand("$nothing"), None);
    }
}
