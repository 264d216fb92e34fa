"""A DataFrame's rows on their way to the operator: columns, types, watermark, payloads."""
