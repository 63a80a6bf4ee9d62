"""Large immutable values in S3, one object each. Never changes a value."""

from __future__ import annotations

from typing import Final

from botocore.exceptions import ClientError

from ductor.adapters.aws import faults
from ductor.adapters.aws.clients import Clients

PREFIX: Final = "payloads/"
"""What the functions may touch of the bucket, and what its lifecycle rule expires."""

_ABSENT: Final = frozenset({"NoSuchKey", "404"})


class S3Blobs:
    """`ports.Blobs` on S3. The functions need s3:ListBucket too: without it an absent object answers AccessDenied."""

    def __init__(self, bucket: str, clients: Clients) -> None:
        self._bucket = bucket
        self._clients = clients

    def put(self, key: str, data: bytes) -> None:
        """Store. A key names its content, so writing it again writes the same bytes."""
        with faults.translated():
            self._clients("s3").put_object(Bucket=self._bucket, Key=PREFIX + key, Body=data)

    def get(self, key: str) -> bytes | None:
        with faults.translated():
            try:
                answer = self._clients("s3").get_object(Bucket=self._bucket, Key=PREFIX + key)
                return bytes(answer["Body"].read())
            except ClientError as error:
                if faults.code_of(error) in _ABSENT:
                    return None
                raise

    def link(self, key: str, seconds: int) -> str:
        """`ports.Links`: signed here, without a request; it ends with the credentials of the function, if earlier."""
        arguments = {"Bucket": self._bucket, "Key": PREFIX + key, "ResponseContentType": "application/json"}
        return str(self._clients("s3").generate_presigned_url("get_object", Params=arguments, ExpiresIn=seconds))

    def keys(self, prefix: str, limit: int) -> tuple[str, ...]:
        with faults.translated():
            answer = self._clients("s3").list_objects_v2(Bucket=self._bucket, Prefix=PREFIX + prefix, MaxKeys=limit)
        return tuple(str(one["Key"]).removeprefix(PREFIX) for one in answer.get("Contents", ()))

    def delete(self, key: str) -> None:
        with faults.translated():
            self._clients("s3").delete_object(Bucket=self._bucket, Key=PREFIX + key)
