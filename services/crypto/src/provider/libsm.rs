//! libsm's SM2, SM3 and SM4.
//!
//! Owns: what makes libsm safe to call. It panics on short input and refuses the 12-byte nonce of RFC 8998, so it is
//! given only keys, points and signatures that were checked when they were read, and its SM4 only in counter mode, which
//! takes any length; the tag of GCM is computed here and compared in constant time.

use crate::mac::BLOCK_BYTES;
use crate::{
    Digest, Error, HashAlgorithm, Hasher, MacKey, NONCE_BYTES, PrivateKey, Provider, PublicKey, SealKey, SealedText,
    Secret, Signature, UserId, random,
};
use ::libsm::sm2::signature::{SigCtx, Signature as Pair};
use ::libsm::sm4::{Cipher as Sm4, Mode};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const TAG_BYTES: usize = 16;
/// GCM masks the tag with the first block of the counter and begins the text with the second.
const TAG_COUNTER: u32 = 1;
const TEXT_COUNTER: u32 = 2;

/// HMAC as RFC 2104 says it, since libsm has none.
pub(super) fn hmac_sm3(key: &MacKey, message: &[u8]) -> Digest {
    let pad = |with: u8| -> Zeroizing<[u8; BLOCK_BYTES]> { Zeroizing::new(key.block().map(|byte| byte ^ with)) };
    let sm3 = |block: &[u8], rest: &[u8]| {
        let mut hasher = Hasher::with_provider(HashAlgorithm::Sm3, Provider::Libsm);
        hasher.update(block).update(rest);
        hasher.finish()
    };
    let inner = sm3(pad(0x36).as_slice(), message);
    sm3(pad(0x5c).as_slice(), inner.as_bytes())
}

pub(super) fn sign(key: &PrivateKey, user: &UserId, message: &[u8]) -> Result<Signature, Error> {
    // Its generator panics when it cannot be seeded; a system without randomness is found here instead.
    random::fill(&mut [0])?;
    let failed = |_| Error::Engine("sign");
    let context = SigCtx::new();
    let point = context.load_pubkey(&key.public_key().to_sec1_bytes()).map_err(failed)?;
    let secret = context.load_seckey(key.expose_bytes().expose()).map_err(failed)?;
    let digest = context.hash(user.as_str(), &point, message).map_err(failed)?;
    let pair = context.sign_raw(&digest, &secret).map_err(failed)?;
    let bytes = [number(&pair.get_r().to_bytes_be())?, number(&pair.get_s().to_bytes_be())?].concat();
    Signature::from_bytes(&bytes)
}

/// A number in 32 bytes, filled up with zeros in front.
fn number(digits: &[u8]) -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    let start = bytes.len().checked_sub(digits.len()).ok_or(Error::Engine("sign"))?;
    bytes[start..].copy_from_slice(digits);
    Ok(bytes)
}

pub(super) fn verify(key: &PublicKey, user: &UserId, message: &[u8], signature: &Signature) -> Result<(), Error> {
    let refused = |_| Error::NotSigned;
    let context = SigCtx::new();
    let point = context.load_pubkey(&key.to_sec1_bytes()).map_err(refused)?;
    let digest = context.hash(user.as_str(), &point, message).map_err(refused)?;
    let bytes = signature.to_bytes();
    let (r, s) = bytes.split_at(bytes.len() / 2);
    match context.verify_raw(&digest, &point, &Pair::new(r, s)) {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(Error::NotSigned),
    }
}

pub(super) fn seal(
    key: &SealKey,
    nonce: &[u8; NONCE_BYTES],
    plain: &[u8],
    associated_data: &[u8],
) -> Result<Vec<u8>, Error> {
    let engine = engine(key)?;
    let mut body = counter_mode(&engine, &counter_block(nonce, TEXT_COUNTER), plain)?;
    let tag = tag(&engine, nonce, associated_data, &body)?;
    body.extend_from_slice(&tag);
    Ok(body)
}

pub(super) fn open(key: &SealKey, sealed: &SealedText, associated_data: &[u8]) -> Result<Secret, Error> {
    let engine = engine(key)?;
    let (text, found) = sealed.body().split_last_chunk::<TAG_BYTES>().ok_or(Error::NotOpened)?;
    let expected = tag(&engine, sealed.nonce(), associated_data, text)?;
    if !bool::from(expected.ct_eq(found)) {
        return Err(Error::NotOpened);
    }
    counter_mode(&engine, &counter_block(sealed.nonce(), TEXT_COUNTER), text).map(Secret::from)
}

fn engine(key: &SealKey) -> Result<Sm4, Error> {
    Sm4::new(key.expose_bytes(), Mode::Ctr).map_err(|_| Error::Engine("take a key"))
}

/// A counter of 128 bits is one of 32 bits until it has run over, which is after 64 GiB and so never.
fn counter_mode(engine: &Sm4, start: &[u8; 16], text: &[u8]) -> Result<Vec<u8>, Error> {
    engine.encrypt(&[], text, start).map_err(|_| Error::Engine("seal"))
}

fn counter_block(nonce: &[u8; NONCE_BYTES], counter: u32) -> [u8; 16] {
    let mut block = [0; 16];
    block[..NONCE_BYTES].copy_from_slice(nonce);
    block[NONCE_BYTES..].copy_from_slice(&counter.to_be_bytes());
    block
}

/// What a block is enciphered to: counter mode over zeros that begins with it.
fn encipher(engine: &Sm4, block: &[u8; 16]) -> Result<Zeroizing<[u8; 16]>, Error> {
    let stream = Zeroizing::new(counter_mode(engine, block, &[0; 16])?);
    stream.as_slice().try_into().map(Zeroizing::new).map_err(|_| Error::Engine("seal"))
}

fn tag(engine: &Sm4, nonce: &[u8; NONCE_BYTES], data: &[u8], text: &[u8]) -> Result<[u8; TAG_BYTES], Error> {
    let mask = encipher(engine, &counter_block(nonce, TAG_COUNTER))?;
    let mut hash = GHash::new((&*encipher(engine, &[0; 16])?).into());
    hash.update_padded(data);
    hash.update_padded(text);
    let mut lengths = [0; 16];
    lengths[..8].copy_from_slice(&bits(data).to_be_bytes());
    lengths[8..].copy_from_slice(&bits(text).to_be_bytes());
    hash.update(&[lengths.into()]);
    let mut tag: [u8; TAG_BYTES] = hash.finalize().into();
    for (byte, with) in tag.iter_mut().zip(mask.iter()) {
        *byte ^= with;
    }
    Ok(tag)
}

/// Saturates where no text of ours reaches.
fn bits(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).saturating_mul(8)
}
