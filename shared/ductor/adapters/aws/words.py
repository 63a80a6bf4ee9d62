"""What rows usually say, for the compression of their bodies: texts that deflate may refer to without storing them.

Part of the format of stored rows. A text that rows were written with is never changed: another one gets another mark.
"""

from __future__ import annotations

from typing import Final

# The most usual stands last, where a reference to it is shortest. Rows are JSON with the fields of `ductor.model`.
WORDS: Final = (
    b'"environment":"default","action":"http.request","status":200,"headers":{"content-type":"application/json"},'
    b'"body":{"id":"","kind":"compensation","kind":"hook","status":"waiting","status":"cancelled","status":"failed",'
    b'"status":"paused","status":"timed_out","error":{"code":"ACTION_FAILED","message":"","retryable":false},'
    b'"error":["ATTEMPT_TIMEOUT","the attempt ran past its timeout"],"connection_ref":"","connection_ref_mode":"",'
    b'"parent_run_id":"","parent_node":"","nesting_depth":1,"labels":[["",""]],"subject_type":"","subject_id":"",'
    b'"external_deployment_id":"","scheduled_at":1,"deadline":1,"context":["v",{}],"attributes":{},"checkpoints":{},'
    b'"signals":[{"id":"","name":"","payload":["v",{}],"at":1}],"tree":{"pages":1,"items":1,"due":{"1":[1,1]}},'
    b'{"number":1,"scatter":"","first":0,"items":[{"nodes":{},"status":"s","output":["v",{}]}],"inputs":["v",[]]}'
    b'{"t":"run_created"},{"t":"run_started"},{"t":"node_waiting","node":""},{"t":"node_failed","node":"","error":'
    b'{"t":"node_skipped","node":""},{"t":"wait_begun"},{"t":"run_completed","output":["v",null]},'
    b'{"type":"wake","at":1},{"type":"check","node":""},{"type":"revoke","node":""},{"type":"nudge"},'
    b'"s":"waiting","s":"skipped","s":"failed","s":"retrying","s":"pending","o":["row","A#s#000001",1],"ref":"blob",'
    b'{"task":{"run_id":"01","tenant":"01","node":"s","attempt":1,"generation":1,"action":"core.echo","input":["v",{}],'
    b'"idempotency_key":"01","definition_id":"01","scheduled_at":1},"status":"succeeded","worker":"lambda-",'
    b'"lease_until":17,"started_at":17,"finished_at":17,"heartbeat_at":17,"output":["v",{}]}'
    b'{"version":2,"at":17,"seq":2,"transitions":[{"t":"node_completed","node":"s","output":["v",{}],"taken":[0]},'
    b'"applied":["01"]}{"origin":{"run_id":"019","tenant":"019","definition_id":"019","family_slug":"",'
    b'"definition_version":1,"created_at":17,"journey_id":"019","environment":"default","root_run_id":"019",'
    b'"input":["v",{}],"variables":["v",{}],"created_by":"019"},"version":2,"seq":2,"status":"completed",'
    b'"status":"running","root":{"nodes":{"s0":{"s":"completed","a":1,"g":1,"e":17,"b":17,"z":17,"o":["v",{}],"q":1,'
    b'"t":17},"s1":{"s":"scheduled","a":1,"g":1,"e":17,"b":17,"c":17,"ce":60000,"i":["v",{}],"t":17}},'
    b'"joins":{"1":[1,1],"2":[1,1]},"attempts":1,"parked":1,"ended":1},"started_at":17,"updated_at":17,'
    b'"finished_at":17,"wake_at":17,"last":{"at":17,"seq":1,"applied":["019/s0/1/finished"],"transitions":['
    b'{"t":"node_completed","node":"s0","output":["v",{}],"taken":[0]},{"t":"node_scheduled","node":"s1","attempt":1,'
    b'"generation":1,"input":["v",{}],"check_at":17,"check_every":60000}],"commands":[{"type":"start","node":"s1",'
    b'"attempt":1,"generation":1}]}}'
)
