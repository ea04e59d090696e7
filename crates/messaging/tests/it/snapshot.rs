//! Compares the bytes of packets and frames with their snapshot.

use crate::decoding::bodies;
use bytes::{Bytes, BytesMut};
use prost::Message;
use steadfast_messaging::envelope::{self, Body, Frame, Hello, Number, Packet, VERSION};
use steadfast_messaging::wire::http2::PATH;
use steadfast_test_snapshots::bytes::{Page, Schema};
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Frames of Body {
    Body::Hello(Hello { refused: None, .. }) => "hello",
    Body::Hello(_) => "refusal",
    Body::Call(_) => "call",
    Body::Tell(_) => "tell",
    Body::Reply(_) => "reply",
    Body::Cancel(_) => "cancel",
    Body::Open(_) => "open",
    Body::Chunk(_) => "chunk",
    Body::Credit(_) => "credit",
    Body::Close(_) => "close",
    Body::Sample(_) => "sample",
    Body::Ping(_) => "ping",
    Body::Pong(_) => "pong",
});

fn write_frames(page: &mut Page) {
    let mut schema = Schema::of(|bytes| Frame::decode(bytes).is_ok());
    for body in bodies().into_iter().chain([Body::Pong(Number { number: 5 })]) {
        page.cover(Frames::of(&body));
        page.form(Frames::of(&body));
        let mut packet = BytesMut::new();
        envelope::append(&mut packet, &body);
        let frame = envelope::packet(packet.freeze()).unwrap().next().unwrap();
        page.protobuf(&frame, &mut schema);
    }
    schema.assert_shown();
    page.assert_covers(Frames::ALL);
}

fn write_packet(page: &mut Page) {
    let frame = Frame { body: Some(Body::Ping(Number { number: 5 })) }.encode_to_vec();
    let packet = Packet { frames: vec![frame.into(), Bytes::new()], sent_us: 1 << 60 };
    let mut schema = Schema::of(|bytes| Packet::decode(bytes).is_ok());
    page.form("packet");
    page.protobuf(&packet.encode_to_vec(), &mut schema);
    schema.assert_shown();
}

#[test]
fn node_frames_match_snapshot() {
    let mut page = Page::default();
    page.form("protocol");
    page.value("version", VERSION);
    page.value("path", PATH);
    write_packet(&mut page);
    write_frames(&mut page);
    assert_snapshot("bytes/node-frames.txt", page.text());
}
