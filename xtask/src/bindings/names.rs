//! One name for each type. The headers have up to four: a tag, a versioned name, the public name, and aliases of other
//! types.

use std::collections::BTreeMap;

use syn::{Item, Type, UseTree};

use super::choices::NAMES;
use crate::output::Result;

/// The text with one name for each type, and without the paths that every use of a primitive carries.
pub fn shorten(text: &str) -> Result<String> {
    let file =
        syn::parse_file(text).map_err(|e| format!("bindgen wrote what syn cannot read: {e}"))?;
    let renamed = renamed(&file.items);
    let text = text
        .replace("::core::ffi::", "")
        .replace("::core::option::", "");
    let text = words(&text, |word| {
        if let Some(count) = word
            .strip_suffix("usize")
            .filter(|c| c.starts_with(|c: char| c.is_ascii_digit()))
        {
            return Some(count);
        }
        renamed.get(word).map(String::as_str)
    });
    if let Some(nameless) = find_word(&text, |word| word.contains("__bindgen_ty_")) {
        return Err(format!(
            "{nameless} has no name in the header: give it one in xtask/src/bindings/choices.rs"
        ));
    }
    Ok(text)
}

/// Names that change, with what they become.
fn renamed(items: &[Item]) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    let mut roots = Vec::new();
    for item in items {
        match item {
            Item::Type(alias) => {
                let name = alias.ident.to_string();
                match named(&alias.ty) {
                    // `CUdevice_v1` is an integer, and not every integer is a device.
                    Some(target) if is_number(&target) && name.starts_with("CU") => {
                        roots.push(name)
                    }
                    Some(target) => aliases.extend([(name, target)]),
                    None => {}
                }
            }
            Item::Use(import) => aliases.extend(import_of(&import.tree)),
            Item::Struct(record) if !is_opaque(record) => roots.push(record.ident.to_string()),
            Item::Union(union) => roots.push(union.ident.to_string()),
            _ => {}
        }
    }
    let mut renamed: BTreeMap<String, String> = roots
        .iter()
        .map(|root| (root.clone(), stem(root).to_owned()))
        .collect();
    for alias in aliases.keys() {
        let mut root = alias;
        while let Some(target) = aliases.get(root) {
            root = target;
        }
        renamed.insert(alias.clone(), stem(root).to_owned());
    }
    renamed
}

/// Whether a struct is only ever pointed to.
pub fn is_opaque(record: &syn::ItemStruct) -> bool {
    record
        .fields
        .iter()
        .any(|field| field.ident.as_ref().is_some_and(|name| name == "_unused"))
}

/// Whether a name is that of an integer type.
pub fn is_number(name: &str) -> bool {
    matches!(name, "c_int" | "c_uint" | "c_ulonglong" | "u64")
}

/// The last name of a path; `None` for any other type, and for a type with arguments.
pub fn named(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    last.arguments.is_none().then(|| last.ident.to_string())
}

/// `pub use self::A as B`: B, A.
fn import_of(tree: &UseTree) -> Option<(String, String)> {
    match tree {
        UseTree::Path(path) => import_of(&path.tree),
        UseTree::Rename(rename) => Some((rename.rename.to_string(), rename.ident.to_string())),
        _ => None,
    }
}

/// The name of a type by its tag.
fn stem(tag: &str) -> &str {
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == tag) {
        return name;
    }
    let endings = ["_st", "_enum", "_union"];
    if let Some(stem) = endings.iter().find_map(|ending| tag.strip_suffix(ending)) {
        return stem;
    }
    match tag.rsplit_once("_v") {
        Some((stem, version)) if version.parse::<u32>().is_ok() => stem,
        _ => tag,
    }
}

/// `text` with every word that `replace` knows replaced, in strings too.
fn words<'a>(text: &'a str, replace: impl Fn(&'a str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = word_length(rest);
        if length == 0 {
            let other = rest.find(is_word).unwrap_or(rest.len());
            out.push_str(&rest[..other]);
            rest = &rest[other..];
        } else {
            let (word, after) = rest.split_at(length);
            out.push_str(replace(word).unwrap_or(word));
            rest = after;
        }
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

fn find_word(text: &str, wanted: impl Fn(&str) -> bool) -> Option<&str> {
    text.split(|c| !is_word(c)).find(|word| wanted(word))
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn a_type_of_many_names_has_one() {
        let text = "pub struct CUmemLocation_st { pub id: ::core::ffi::c_int }\n\
            pub type CUmemLocation_v1 = CUmemLocation_st;\n\
            pub type CUmemLocation = CUmemLocation_v1;\n\
            pub type f = fn(CUmemLocation_v1, CUmemLocation, CUmemLocation_v2);\n\
            const _: &str = \"Size of CUmemLocation_st\";\n";
        assert_eq!(
            shorten(text).unwrap(),
            "pub struct CUmemLocation { pub id: c_int }\n\
             pub type CUmemLocation = CUmemLocation;\n\
             pub type CUmemLocation = CUmemLocation;\n\
             pub type f = fn(CUmemLocation, CUmemLocation, CUmemLocation_v2);\n\
             const _: &str = \"Size of CUmemLocation\";\n"
        );
    }

    #[test]
    fn a_second_version_keeps_its_number_and_an_identity_loses_it() {
        let text = "pub struct CUDA_KERNEL_NODE_PARAMS_v2_st {}\n\
            pub type CUDA_KERNEL_NODE_PARAMS_v2 = CUDA_KERNEL_NODE_PARAMS_v2_st;\n\
            pub type CUdevice_v1 = ::core::ffi::c_int;\n\
            pub type CUdevice = CUdevice_v1;\n";
        let shortened = shorten(text).unwrap();
        assert!(
            shortened.starts_with("pub struct CUDA_KERNEL_NODE_PARAMS_v2 {}"),
            "{shortened}"
        );
        assert!(
            shortened.contains("pub type CUdevice = c_int;"),
            "{shortened}"
        );
    }

    #[test]
    fn what_the_header_leaves_without_a_name_must_get_one() {
        let said = shorten("pub struct CUx_st__bindgen_ty_1 { pub x: u64 }").unwrap_err();
        assert!(said.contains("CUx_st__bindgen_ty_1 has no name"), "{said}");
    }
}
