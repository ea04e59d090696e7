//! Writes the fields of a protobuf message, each with the path of its numbers.

use super::schema::{Field, Kind, Schema};
use super::text;
use std::fmt::Write;

const VARINT: u64 = 0;
pub(super) const FIXED64: u64 = 1;
pub(super) const LENGTH: u64 = 2;
pub(super) const FIXED32: u64 = 5;

/// Appends a line per field.
pub(super) fn write(bytes: &[u8], schema: &mut Schema, out: &mut String) {
    write_fields(bytes, schema, "", out);
}

fn write_fields(mut bytes: &[u8], schema: &mut Schema, path: &str, out: &mut String) {
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes);
        let (tag, wire) = (key >> 3, key & 7);
        let Some(field) = schema.fields.get_mut(&tag) else { panic!("the decoder does not know the field {path}{tag}") };
        field.shown = true;
        let _strings_always_grow = write!(out, "{path}{tag}: ");
        match wire {
            VARINT => write_number(take_varint(&mut bytes), "", out),
            FIXED64 => write_number(take_fixed(8, &mut bytes), "fixed64 ", out),
            FIXED32 => write_number(take_fixed(4, &mut bytes), "fixed32 ", out),
            LENGTH => {
                let length = take_varint(&mut bytes) as usize;
                write_content(take(length, &mut bytes), field, &format!("{path}{tag}."), out);
            }
            wire => panic!("the field {path}{tag} has the unknown wire type {wire}"),
        }
    }
}

fn write_number(number: u64, kind: &str, out: &mut String) {
    let _strings_always_grow = writeln!(out, "{kind}{number}");
}

fn write_content(content: &[u8], field: &mut Field, path: &str, out: &mut String) {
    match &mut field.kind {
        Kind::Message(schema) => {
            let _strings_always_grow = writeln!(out, "message");
            write_fields(content, schema, path, out);
        }
        Kind::Text | Kind::Bytes => out.push_str(&text::content(content)),
        Kind::Number => panic!("the field {path} is a number and has content"),
    }
}

fn take<'a>(length: usize, bytes: &mut &'a [u8]) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn take_fixed(length: usize, bytes: &mut &[u8]) -> u64 {
    take(length, bytes).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
    take(length, bytes).iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
}

pub(super) fn put_key(tag: u64, wire: u64, out: &mut Vec<u8>) {
    put_varint(tag << 3 | wire, out);
}

pub(super) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    struct Inner {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(int64, tag = "16")]
        count: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Outer {
        #[prost(message, repeated, tag = "3")]
        inner: Vec<Inner>,
        #[prost(fixed64, tag = "4")]
        id: u64,
        #[prost(bytes = "vec", tag = "45")]
        content: Vec<u8>,
    }

    fn schema() -> Schema {
        Schema::of(|bytes| Outer::decode(bytes).is_ok())
    }

    fn written(outer: &Outer, schema: &mut Schema) -> String {
        let mut text = String::new();
        write(&outer.encode_to_vec(), schema, &mut text);
        text
    }

    #[test]
    fn nested_fields_have_paths() {
        let inner = vec![Inner { name: "a".into(), count: -1 }];
        let outer = Outer { inner, id: 258, content: vec![0xff, 0] };
        let mut schema = schema();
        let text = written(&outer, &mut schema);
        assert_eq!(text, "3: message\n3.1: \"a\"\n3.16: 18446744073709551615\n4: fixed64 258\n45: 2 bytes\n  ff00\n");
        schema.assert_shown();
    }

    #[test]
    #[should_panic(expected = "[\"3.16\", \"45\"]")]
    fn missing_fields_panic() {
        let mut schema = schema();
        written(&Outer { inner: vec![Inner { name: "a".into(), count: 0 }], id: 1, content: Vec::new() }, &mut schema);
        schema.assert_shown();
    }
}
