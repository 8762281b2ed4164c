//! The declarations by kind, with the choices applied.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{Expr, Field, Fields, Ident, ImplItem, Item, ItemStruct, ItemUnion, Type, TypeFnPtr};

use super::choices::{BYTES, FLAGS, Flags, MACROS, TYPED};
use super::entries;
use super::layout::Layout;
use super::names::{is_number, is_opaque, named};
use crate::output::Result;

/// An enum of the header, or a set of flags.
pub struct Values {
    pub name: String,
    pub representation: String,
    pub values: Vec<(String, String)>,
}

/// A struct or a union.
#[derive(Clone)]
pub enum Record {
    Struct(ItemStruct),
    Union(ItemUnion),
}

impl Record {
    /// Its name.
    pub fn name(&self) -> &Ident {
        match self {
            Self::Struct(record) => &record.ident,
            Self::Union(union) => &union.ident,
        }
    }

    /// Its fields.
    pub fn fields(&mut self) -> syn::punctuated::IterMut<'_, Field> {
        match self {
            Self::Struct(record) => record.fields.iter_mut(),
            Self::Union(union) => union.fields.named.iter_mut(),
        }
    }
}

/// All that is generated. Order is the header's, but for functions, whose order is the table's.
#[derive(Default)]
pub struct Model {
    /// Name, type, value.
    pub constants: Vec<(String, &'static str, String)>,
    pub handles: Vec<String>,
    /// Name and representation of identities that are integers.
    pub numbers: Vec<(String, String)>,
    pub enums: Vec<Values>,
    pub flags: Vec<Values>,
    pub records: Vec<Record>,
    pub layouts: Vec<Layout>,
    /// Types of functions that the driver calls.
    pub callbacks: Vec<(String, Type)>,
    /// The driver's functions, by typedef.
    pub functions: BTreeMap<String, TypeFnPtr>,
}

impl Model {
    /// Reads bindgen's declarations after their names were shortened.
    pub fn read(text: &str) -> Result<Self> {
        let file = syn::parse_file(text)
            .map_err(|e| format!("the renamed declarations are not Rust: {e}"))?;
        let mut model = Self::default();
        let mut macros = Vec::new();
        for item in file.items {
            model.add(item, &mut macros)?;
        }
        model.take_macros(macros)?;
        model.retype()?;
        for values in std::mem::take(&mut model.enums) {
            let is_flags = FLAGS.iter().any(|flags| values.name == flags.name);
            let kind = if is_flags {
                &mut model.flags
            } else {
                &mut model.enums
            };
            kind.push(values);
        }
        for typedef in entries::typedefs() {
            if !model.functions.contains_key(typedef) {
                return Err(format!("cudaTypedefs.h of this release has no {typedef}"));
            }
        }
        Ok(model)
    }

    fn add(&mut self, item: Item, macros: &mut Vec<(String, String)>) -> Result<()> {
        match item {
            Item::Use(_) => {}
            Item::Type(alias) => self.add_alias(alias.ident.to_string(), *alias.ty)?,
            Item::Struct(record) if is_opaque(&record) => {}
            Item::Struct(record) => match &record.fields {
                Fields::Unnamed(fields) => self.enums.push(Values {
                    name: record.ident.to_string(),
                    representation: fields
                        .unnamed
                        .first()
                        .map(|field| text(&field.ty))
                        .unwrap_or_default(),
                    values: Vec::new(),
                }),
                _ => self.records.push(Record::Struct(record)),
            },
            Item::Union(union) => self.records.push(Record::Union(union)),
            Item::Impl(block) => {
                let name = text(&block.self_ty);
                let Some(values) = self.enums.iter_mut().find(|values| values.name == name) else {
                    return Err(format!("{name} has values but is no enum"));
                };
                for item in block.items {
                    if let ImplItem::Const(value) = item {
                        values
                            .values
                            .push((value.ident.to_string(), argument(&value.expr)?));
                    }
                }
                // The last name of some enums only counts the others: in a newer header it has another value.
                while values.values.last().is_some_and(|(name, _)| {
                    name.ends_with("_MAX") || name.ends_with("_NUM_OPTIONS")
                }) {
                    values.values.pop();
                }
            }
            Item::Const(constant) if constant.ident == "_" => {
                self.layouts.push(Layout::read(&constant.expr)?)
            }
            Item::Const(constant) => {
                macros.push((constant.ident.to_string(), text(&constant.expr)))
            }
            other => return Err(format!("nothing is known to do with `{}`", text(&other))),
        }
        Ok(())
    }

    fn add_alias(&mut self, name: String, ty: Type) -> Result<()> {
        if let Type::Ptr(_) = ty {
            self.handles.push(name);
            return Ok(());
        }
        if let Some(target) = named(&ty) {
            // What is left of an alias is its own name; one of an integer is an identity.
            if target != name && is_number(&target) {
                self.numbers.push((name, target));
            }
            return Ok(());
        }
        let function = function(&ty)
            .ok_or_else(|| format!("nothing is known to do with the type of {name}"))?;
        if name.starts_with("PFN_") {
            self.functions.insert(name, function);
        } else {
            self.callbacks.push((name, ty));
        }
        Ok(())
    }

    /// Macros become constants, or values of a set of flags.
    fn take_macros(&mut self, macros: Vec<(String, String)>) -> Result<()> {
        for Flags {
            name,
            macros: prefix,
        } in FLAGS
        {
            let Some(prefix) = prefix else { continue };
            let values = macros
                .iter()
                .filter(|(macro_name, _)| macro_name.starts_with(prefix));
            self.enums.push(Values {
                name: (*name).to_owned(),
                representation: "c_uint".to_owned(),
                values: values.cloned().collect(),
            });
        }
        for (prefix, ty) in MACROS {
            let values = macros.iter().filter(|(name, _)| name.starts_with(prefix));
            self.constants
                .extend(values.map(|(name, value)| (name.clone(), *ty, value.clone())));
        }
        Ok(())
    }

    /// Gives plain integers the types whose values they are.
    fn retype(&mut self) -> Result<()> {
        let mut representations = BTreeMap::new();
        for typed in TYPED {
            let place = format!("{} of {}", typed.member, typed.owner);
            let ty = self
                .member(typed.owner, typed.member)
                .ok_or_else(|| format!("there is no {place}"))?;
            let representation = text(ty);
            *ty = syn::parse_str(typed.name).map_err(|e| e.to_string())?;
            let known = representations.insert(typed.name, representation.clone());
            if known.is_some_and(|known| known != representation) {
                return Err(format!(
                    "{} is as wide as {representation} in {place}, and not so elsewhere",
                    typed.name
                ));
            }
        }
        for (name, representation) in representations {
            let values = self.enums.iter_mut().find(|values| values.name == name);
            values
                .ok_or_else(|| format!("there is no {name}"))?
                .representation = representation;
        }
        for (owner, field) in BYTES {
            match self.member(owner, field) {
                Some(Type::Array(array))
                    if named(&array.elem).is_some_and(|name| name == "c_char") =>
                {
                    *array.elem = syn::parse_quote!(u8);
                }
                _ => return Err(format!("{field} of {owner} is no array of char")),
            }
        }
        Ok(())
    }

    /// The type of a function's parameter or of a record's field.
    fn member(&mut self, owner: &str, member: &str) -> Option<&mut Type> {
        for (typedef, function) in &mut self.functions {
            if entries::parts(typedef).is_some_and(|(symbol, _)| symbol == owner) {
                let mut inputs = function.inputs.iter_mut();
                let found = inputs
                    .find(|input| input.name.as_ref().is_some_and(|(name, _)| name == member))?;
                return Some(&mut found.ty);
            }
        }
        let record = self
            .records
            .iter_mut()
            .find(|record| record.name() == owner)?;
        let mut fields = record.fields();
        fields
            .find(|field| field.ident.as_ref().is_some_and(|name| name == member))
            .map(|field| &mut field.ty)
    }
}

/// Tokens as text.
pub fn text(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

/// `Option<unsafe extern "C" fn(…)>`, without the option.
fn function(ty: &Type) -> Option<TypeFnPtr> {
    let Type::Path(path) = ty else { return None };
    let syn::PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments
    else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(Type::FnPtr(function)) => Some(function.clone()),
        _ => None,
    }
}

/// The value of `CUresult(700)`.
fn argument(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Call(call) if call.args.len() == 1 => Ok(text(&call.args[0])),
        other => Err(format!("`{}` is no enum's value", text(other))),
    }
}
