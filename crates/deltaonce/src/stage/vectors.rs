//! Deletion vectors as files.

use object_store::{ObjectStoreExt, PutPayload};
use roaring::RoaringTreemap;
use uuid::Uuid;

use super::Stager;
use crate::error::Result;
use crate::store::failure;
use crate::table::actions::DeletionVector;
use crate::table::deletion_vector;

impl Stager {
    /// Writes sets of places of rows as deletion vectors, one each in that order, several to a file.
    ///
    /// # Errors
    /// Why storage failed.
    pub(crate) async fn mask(&self, masked: Vec<RoaringTreemap>) -> Result<Vec<DeletionVector>> {
        let files = &self.rows.files;
        let mut vectors = Vec::with_capacity(masked.len());
        for file in deletion_vector::encode(&masked, || Uuid::from_u128(files.host.random()))? {
            let put = files.store.put(&file.path, PutPayload::from_bytes(file.bytes)).await;
            put.map_err(|e| failure::storage(&files.table, "write a deletion vector of", e))?;
            vectors.extend(file.vectors);
        }
        Ok(vectors)
    }
}
