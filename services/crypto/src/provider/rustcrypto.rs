//! RustCrypto's sm2, sm3 and sm4, and the twins SHA-256 and AES-256.
//!
//! Invariant: a signature's nonce comes from the key, the message and fresh random bytes together (RFC 6979 with added
//! data), so it stays safe when any one of them is weak.

use crate::random::SysRng;
use crate::{
    Cipher, Digest, Error, MacKey, NONCE_BYTES, PrivateKey, PublicKey, SealKey, SealedText, Secret, Signature, UserId,
};
use aes_gcm::aead::{Aead, KeyInit, Payload, consts::U12};
use aes_gcm::{Aes256Gcm, AesGcm};
use hmac::{Hmac, Mac};
use sm2::dsa::signature::{RandomizedSigner, Verifier};
use sm2::dsa::{SigningKey, VerifyingKey};

/// SM4-GCM of RFC 8998.
type Sm4Gcm = AesGcm<sm4::Sm4, U12>;

pub(super) fn hmac_sm3(key: &MacKey, message: &[u8]) -> Digest {
    let mac = <Hmac<sm3::Sm3> as KeyInit>::new((&*key.block()).into());
    Digest::from_bytes(mac.chain_update(message).finalize().into_bytes().into())
}

pub(super) fn hmac_sha256(key: &MacKey, message: &[u8]) -> Digest {
    let mac = <Hmac<sha2::Sha256> as KeyInit>::new((&*key.block()).into());
    Digest::from_bytes(mac.chain_update(message).finalize().into_bytes().into())
}

pub(super) fn sign(key: &PrivateKey, user: &UserId, message: &[u8]) -> Result<Signature, Error> {
    let failed = |_| Error::Engine("sign");
    let key = SigningKey::new(user.as_str(), key.engine()).map_err(failed)?;
    key.try_sign_with_rng(&mut SysRng, message).map(Signature::from).map_err(failed)
}

pub(super) fn verify(key: &PublicKey, user: &UserId, message: &[u8], signature: &Signature) -> Result<(), Error> {
    let key = VerifyingKey::new(user.as_str(), key.engine()).map_err(|_| Error::NotSigned)?;
    key.verify(message, signature.engine()).map_err(|_| Error::NotSigned)
}

pub(super) fn seal(
    key: &SealKey,
    nonce: &[u8; NONCE_BYTES],
    plain: &[u8],
    associated_data: &[u8],
) -> Result<Vec<u8>, Error> {
    let failed = |_| Error::Engine("seal");
    let payload = Payload { msg: plain, aad: associated_data };
    match key.cipher() {
        Cipher::Sm4Gcm => engine::<Sm4Gcm>(key)?.encrypt(nonce.into(), payload).map_err(failed),
        Cipher::Aes256Gcm => engine::<Aes256Gcm>(key)?.encrypt(nonce.into(), payload).map_err(failed),
    }
}

pub(super) fn open(key: &SealKey, sealed: &SealedText, associated_data: &[u8]) -> Result<Secret, Error> {
    let payload = Payload { msg: sealed.body(), aad: associated_data };
    let plain = match key.cipher() {
        Cipher::Sm4Gcm => engine::<Sm4Gcm>(key)?.decrypt(sealed.nonce().into(), payload),
        Cipher::Aes256Gcm => engine::<Aes256Gcm>(key)?.decrypt(sealed.nonce().into(), payload),
    };
    plain.map(Secret::from).map_err(|_| Error::NotOpened)
}

fn engine<G: KeyInit>(key: &SealKey) -> Result<G, Error> {
    G::new_from_slice(key.expose_bytes()).map_err(|_| Error::Engine("take a key"))
}
